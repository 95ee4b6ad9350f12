import type { ChainNode, IndexedChain } from '@playline/chain';
import { createMetrics } from '@playline/runtime';
import type { IndexLogs } from '../index-log.ts';
import { createIndexerMetrics } from '../indexer-metrics.ts';
import { ChainLane } from '../lane.ts';
import { NodesFault } from '../node-pool.ts';

export const CHAIN: IndexedChain = {
  name: 'demo-chain',
  id: 'eip155:31337',
  chainId: 31_337,
  urls: ['http://127.0.0.1:1'],
  finality: 'finalized',
  start: 0,
  rangeBlocks: 8,
  pollMs: 50,
  nativeSymbol: 'ETH',
  marketplaces: [],
  bridges: [],
  legacyTokens: [],
  hasBlooms: true,
  stillAfterS: 120,
};

/** Creates a lane. Its clock advances whenever it is read, so that a failed node is skipped for only a few steps. */
export function createTestLane(
  nodes: readonly ChainNode[],
  logs: IndexLogs,
  {
    name = CHAIN.name,
    chain = { ...CHAIN, name },
    recordsMax = 4,
    clock = { nowMs: 0 },
    isLagging,
  }: {
    name?: string;
    chain?: IndexedChain;
    recordsMax?: number;
    clock?: { nowMs: number };
    isLagging?: (node: ChainNode) => boolean;
  } = {},
) {
  const metrics = createMetrics('test');
  const lane = new ChainLane({
    chain,
    nodes,
    logs,
    recordsMax,
    metrics: createIndexerMetrics(metrics)(chain.name),
    ...(isLagging && { isLagging }),
    nowMs: () => clock.nowMs++,
    wallClockMs: () => 1_700_000_000_000,
  });
  return { lane, metrics, clock };
}

/** Steps until all final blocks are indexed. @throws Error after too many steps */
export async function stepToEnd({ lane, clock }: ReturnType<typeof createTestLane>, stepsMax = 500): Promise<void> {
  for (let step = 0; step < stepsMax; step++) {
    try {
      if ((await lane.step()) === 'idle') return;
    } catch (fault) {
      if (!(fault instanceof NodesFault)) continue;
    }
    clock.nowMs += 120_000;
  }
  throw new Error(`not at the end after ${stepsMax} steps`);
}
