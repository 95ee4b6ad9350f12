export { CONTRACT_ABIS, type TestChainClient } from './chain-client.ts';
export { openTestChain, type TestChain, type TestChainOptions } from './test-chain.ts';
