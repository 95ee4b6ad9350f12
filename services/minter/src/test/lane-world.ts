import { activityIdOf } from '@playline/chain';
import type { MintStateRecord } from '@playline/contracts';
import { MintLane } from '../lane/mint-lane.ts';
import { createNodeChoice } from '../pipeline.ts';
import type { ChainNode, ChainRules, KeyStatus } from '../ports.ts';
import { MemoryChain } from './memory-chain.ts';
import { MemoryMintLog } from './memory-mint-log.ts';
import { createMemorySigner, MemoryNode } from './memory-node.ts';
import { CHAIN, CONTRACTS, SHIELDS, SIGNER, SWORDS, toAddress, toRequest } from './mint-requests.ts';

/** The number of latest blocks that are not final. */
export const DEPTH = 4;
export const ADDRESS = toAddress(SIGNER);
const RULES: ChainRules = {
  chainId: 31_337,
  gasMax: 8_000_000,
  feeMax: 20_000n,
  priorityFeeMax: 5_000n,
  stuckAfterMs: 10_000,
  resendEveryMs: 5_000,
  openNoncesMax: 4,
  unfinalNoncesMax: 100,
  assetsMax: 100,
};

/** Creates a signer, a chain, its nodes and its log. @param nodesOf creates the lane's nodes from the real node */
export function createWorld(
  nodesOf: (node: MemoryNode) => readonly ChainNode[] = (node) => [node],
  ruleOverrides: Partial<ChainRules> = {},
) {
  const chain = new MemoryChain(CONTRACTS);
  const [node, log] = [new MemoryNode(chain, { depth: DEPTH }), new MemoryMintLog()];
  const time = { ms: 0 };
  const unlinked = new Set<string>();
  const key: { status: KeyStatus } = { status: { kind: 'live' } };
  for (const contract of [SWORDS, SHIELDS]) chain.setRole(contract, ADDRESS, true);
  node.mine();
  let offset = 0;
  return {
    chain,
    node,
    log,
    time,
    key,
    unlinked,
    takeOver: () =>
      MintLane.takeOver({
        lane: { chain: CHAIN, signer: SIGNER },
        rules: { ...RULES, ...ruleOverrides },
        activityIdOf,
        nodes: createNodeChoice(nodesOf(node)),
        log: {
          ...log,
          openWriter: (lane) => log.openWriter(lane),
          lanesOf: () => log.lanesOf(),
          others: log.createOthers(),
        },
        signer: createMemorySigner(ADDRESS, () => key.status),
        isUnlinked: ({ projectId }) => unlinked.has(projectId),
        clock: { wallClockMs: () => time.ms, monotonicMs: () => time.ms },
      }),
    request: (...args: Parameters<typeof toRequest>) => ({
      request: toRequest(...args),
      partition: 0,
      offset: offset++,
    }),
    mine: (blocks: number) => {
      for (let at = 0; at < blocks; at++) node.mine();
    },
    last: (referenceId?: string): MintStateRecord =>
      log.states.filter((state) => referenceId === undefined || state.referenceId === referenceId).at(-1)!,
    tokens: () => chain.head.state.tokens.length,
  };
}
