import { CHAIN_ID, SIGNATURES } from '@playline/infra/chain';
import { createTestClient, defineChain, http, parseAbi, publicActions, walletActions } from 'viem';

/** Often: blocks of a test come quickly. */
const POLL_MS = 25;

const chain = defineChain({
  id: CHAIN_ID,
  name: 'demo-chain',
  nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
  rpcUrls: { default: { http: [] } },
});

export type TestChainClient = ReturnType<typeof createChainClient>;

/** Asks a test's node, sends to it, and has it do what only such nodes do. Nothing is remembered between questions. */
export function createChainClient(rpc: string) {
  // A node that was killed is for the test to notice.
  const transport = http(rpc, { retryCount: 0 });
  return createTestClient({ mode: 'anvil', chain, transport, pollingInterval: POLL_MS, cacheTime: 0 })
    .extend(publicActions)
    .extend(walletActions);
}

/** Of the compiled contracts, for viem, which checks names and arguments of calls by them. */
export const CONTRACT_ABIS = {
  'demo-erc721': parseAbi(SIGNATURES['demo-erc721']),
  'demo-erc1155': parseAbi(SIGNATURES['demo-erc1155']),
  'demo-erc20': parseAbi(SIGNATURES['demo-erc20']),
  'consecutive-erc721': parseAbi(SIGNATURES['consecutive-erc721']),
  'hostile-erc20': parseAbi(SIGNATURES['hostile-erc20']),
  'log-emitter': parseAbi(SIGNATURES['log-emitter']),
  'old-erc20': parseAbi(SIGNATURES['old-erc20']),
} as const;
