/** The chain of a local stack, as development nodes number theirs. */
export const CHAIN_ID = 31_337;

/** Contracts that a local stack has on its chain. */
export type DemoContract = 'erc721' | 'erc1155' | 'erc20';

/**
 * The first account of the chain: the node has its private key, which everybody knows, and signs for whoever asks. It
 * administers the demo contracts.
 */
export const ADMIN = '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266';

/** A contract that is there from the first block and deploys others, at addresses that follow from what they are. */
export const CREATE2_DEPLOYER = '0x4e59b44847b379578588920ca78fbf26c0b4956c';

export const DEMO_SALT = `0x${'0'.repeat(64)}` as const;

/** What the constructors are told behind the administrator's address. */
export const DEMO_ARGUMENTS: Record<DemoContract, readonly string[]> = {
  erc721: ['Demo Heroes', 'HERO'],
  erc1155: ['Demo Items'],
  erc20: ['Demo Gold', 'GOLD'],
};
