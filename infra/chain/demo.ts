/** The chain of a local stack. It has the number that development nodes use. */
export const CHAIN_ID = 31_337;

/** Contracts that a local stack has on its chain. */
export type DemoContract = 'erc721' | 'erc1155' | 'erc20';

/**
 * The first account of the chain. Its private key is public, and the node signs with it for every caller. It
 * administers the demo contracts.
 */
export const ADMIN = '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266';

/** A contract that exists from the first block. It deploys others at addresses that follow from their bytecode. */
export const CREATE2_DEPLOYER = '0x4e59b44847b379578588920ca78fbf26c0b4956c';

export const DEMO_SALT = `0x${'0'.repeat(64)}` as const;

/** The constructors' arguments after the administrator's address. */
export const DEMO_ARGUMENTS: Record<DemoContract, readonly string[]> = {
  erc721: ['Demo Heroes', 'HERO'],
  erc1155: ['Demo Items'],
  erc20: ['Demo Gold', 'GOLD'],
};
