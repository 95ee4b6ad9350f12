import type { ChainStore } from '@playline/chain';
import { createRequestDurations } from '@playline/http';
import type { Metrics } from '@playline/runtime';
import type { Chain } from './chains.ts';
import type { LookupOutcome } from './token-lookup.ts';

export type ChainApiMetrics = ReturnType<typeof createChainApiMetrics>;

const READ_BUCKETS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** Label values come from small fixed sets, never from addresses or ids. */
export function createChainApiMetrics(metrics: Metrics) {
  const refused = metrics.counter('playline_chain_api_rate_limited_total', 'Requests rejected by a limit', ['limit']);
  const staleHorizon = metrics.counter(
    'playline_chain_api_stale_horizon_pages_total',
    'Pages served with the last known horizon because Redis could not be read',
  );
  const reads = metrics.histogram('playline_chain_api_read_duration_seconds', 'Duration of store reads', {
    bucketsSeconds: READ_BUCKETS_S,
    labelNames: ['operation'],
  });
  const lookups = metrics.counter(
    'playline_chain_api_token_lookups_total',
    'Token lookups on chain nodes for contracts that are not stored',
    ['outcome'],
  );
  return {
    onAnswer: createRequestDurations(metrics),
    onRefused: (limit: string) => refused.inc({ limit }),
    onStaleHorizon: () => staleHorizon.inc(),
    onRead: (operation: 'token' | 'activity-history', seconds: number) => reads.observe({ operation }, seconds),
    onLookup: (outcome: LookupOutcome) => lookups.inc({ outcome }),
  };
}

type Reads = Pick<ChainStore, 'readPage' | 'readToken'>;

export function timeReads(store: Reads, { onRead }: Pick<ChainApiMetrics, 'onRead'>): Reads {
  const timed = async <T>(operation: Parameters<typeof onRead>[0], read: () => Promise<T>): Promise<T> => {
    const startedMs = performance.now();
    try {
      return await read();
    } finally {
      onRead(operation, (performance.now() - startedMs) / 1000);
    }
  };
  return {
    readPage: (query) => timed('activity-history', () => store.readPage(query)),
    readToken: (chain, address) => timed('token', () => store.readToken(chain, address)),
  };
}

/** The lag of the feed is the current time minus this metric. */
export function exportHorizons(
  metrics: Metrics,
  chains: readonly Chain[],
  lastKnown: (partition: number) => number | null,
): void {
  metrics.collectedGauge(
    'playline_chain_api_horizon_timestamp_seconds',
    'Last known time up to which the activities of a chain are served',
    {
      labelNames: ['chain'],
      collect: (gauge) => {
        for (const { name, partition } of chains) {
          const watermark = lastKnown(partition);
          if (watermark !== null) gauge.set({ chain: name }, watermark / 1_000_000);
        }
      },
    },
  );
}
