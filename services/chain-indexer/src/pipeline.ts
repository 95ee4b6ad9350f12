import type { ChainNode, IndexedChain } from '@playline/chain';
import type { Logger, Metrics, Use } from '@playline/runtime';
import type { IndexLogs } from './index-log.ts';
import { createIndexerMetrics } from './indexer-metrics.ts';
import { ChainLane } from './lane.ts';
import { openLane, type RunningLane } from './run-lane.ts';

export interface PipelineOptions {
  readonly chains: readonly IndexedChain[];
  /** @param name for logs and metrics, where the address may not stand */
  readonly createNode: (node: { name: string; url: string }) => ChainNode;
  readonly logs: IndexLogs;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly use: Use;
}

/**
 * Each chain in a lane of its own, a range of final blocks a step:
 * open the log (ends any other indexer of the chain) -> read its progress
 * -> read the horizon of a node -> plan a range up to it -> read and check blocks and logs
 * -> make activities of logs, in batches -> describe tokens that are new -> publish activities, tokens and progress at once
 */
export async function startLanes(options: PipelineOptions): Promise<readonly RunningLane[]> {
  const { chains, createNode, logs, logger, use } = options;
  const metricsOf = createIndexerMetrics(options.metrics);
  const lanes: RunningLane[] = [];
  watchSilence(options.metrics, lanes);
  for (const chain of chains) {
    const nodes = chain.urls.map((url, index) => createNode({ name: `${chain.name}/${index + 1}`, url }));
    const lane = new ChainLane({ chain, nodes, logs, metrics: metricsOf(chain.name), logger });
    const { name, pollMs } = chain;
    lanes.push(await use(`lane of ${name}`, () => openLane({ chain: name, lane, pollMs, logger })));
  }
  return lanes;
}

function watchSilence(metrics: Metrics, lanes: readonly RunningLane[]): void {
  metrics.collectedGauge('chain_indexer_silent_seconds', 'Since nodes or brokers have last let a chain be looked at', {
    labelNames: ['chain'],
    collect: (gauge) => {
      for (const { chain, silentMs } of lanes) gauge.set({ chain }, silentMs / 1000);
    },
  });
}
