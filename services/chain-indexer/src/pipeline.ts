import type { ChainNode, IndexedChain } from '@playline/chain';
import type { Logger, Metrics, Use } from '@playline/runtime';
import { type HeadWatch, openHeadWatch } from './head-watch.ts';
import type { IndexLogs } from './index-log.ts';
import { createIndexerMetrics } from './indexer-metrics.ts';
import { ChainLane } from './lane.ts';
import { openLane, type RunningLane } from './run-lane.ts';
import { ChainIdentity } from './steps/chain-identity.ts';

export interface PipelineOptions {
  readonly chains: readonly IndexedChain[];
  /** @param name must not contain the URL */
  readonly createNode: (node: { name: string; url: string }) => ChainNode;
  readonly logs: IndexLogs;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly use: Use;
}

/** Starts a lane for each chain. */
export async function startLanes(options: PipelineOptions): Promise<readonly RunningLane[]> {
  const { chains, createNode, logs, logger, use } = options;
  const metricsOf = createIndexerMetrics(options.metrics);
  const lanes: RunningLane[] = [];
  const watches = new Map<string, HeadWatch>();
  watchSilence(options.metrics, lanes);
  watchHeads(options.metrics, watches);
  for (const chain of chains) {
    const nodes = chain.urls.map((url, index) => createNode({ name: `${chain.name}/${index + 1}`, url }));
    const { name, pollMs } = chain;
    const identity = new ChainIdentity(chain.chainId);
    const { watch } = await use(`head watch for ${name}`, () => openHeadWatch({ chain, identity, nodes, logger }));
    watches.set(name, watch);
    const isLagging = (node: ChainNode) => watch.isLagging(node);
    const lane = new ChainLane({ chain, identity, nodes, isLagging, logs, metrics: metricsOf(name), logger });
    lanes.push(await use(`lane for ${name}`, () => openLane({ chain: name, lane, watch, pollMs, logger })));
  }
  return lanes;
}

function watchSilence(metrics: Metrics, lanes: readonly RunningLane[]): void {
  metrics.collectedGauge(
    'playline_chain_indexer_silent_seconds',
    'Seconds by which a step is overdue because nodes or brokers do not respond',
    {
      labelNames: ['chain'],
      collect: (gauge) => {
        for (const { chain, silentMs } of lanes) gauge.set({ chain }, silentMs / 1000);
      },
    },
  );
}

function watchHeads(metrics: Metrics, watches: ReadonlyMap<string, HeadWatch>): void {
  metrics.collectedGauge('playline_chain_indexer_node_block_number', 'Latest block per node', {
    labelNames: ['chain', 'node'],
    collect: (gauge) => {
      for (const [chain, { heads }] of watches)
        for (const { node, head } of heads) if (head !== null) gauge.set({ chain, node: node.name }, head);
    },
  });
  metrics.collectedGauge(
    'playline_chain_indexer_node_lags',
    '1 while a node is silent, or half a minute behind the other nodes',
    {
      labelNames: ['chain', 'node'],
      collect: (gauge) => {
        for (const [chain, { heads }] of watches)
          for (const { node, isLagging } of heads) gauge.set({ chain, node: node.name }, isLagging ? 1 : 0);
      },
    },
  );
  metrics.collectedGauge(
    'playline_chain_indexer_head_unchanged_seconds',
    'Seconds since any node last had a higher block, or 0 if the chain is not stalled',
    {
      labelNames: ['chain'],
      collect: (gauge) => {
        for (const [chain, { stall }] of watches) gauge.set({ chain }, (stall?.ms ?? 0) / 1000);
      },
    },
  );
}
