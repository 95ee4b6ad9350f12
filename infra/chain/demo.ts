// The demo contracts on the chain of a local stack.

/** The usual chain id of development nodes. */
export const CHAIN_ID = 31_337;

export type DemoContract = 'erc721' | 'erc1155' | 'erc20';

/** The first account of the node, which administers the demo contracts. Its private key is publicly known. */
export const ADMIN = '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266';

/** A contract in the first block that deploys contracts at addresses derived from their bytecode. */
export const CREATE2_DEPLOYER = '0x4e59b44847b379578588920ca78fbf26c0b4956c';

export const DEMO_SALT = `0x${'0'.repeat(64)}` as const;

/** Constructor arguments that follow the administrator. */
export const DEMO_ARGUMENTS: Record<DemoContract, readonly string[]> = {
  erc721: ['Demo Heroes', 'HERO'],
  erc1155: ['Demo Items'],
  erc20: ['Demo Gold', 'GOLD'],
};
