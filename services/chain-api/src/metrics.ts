import type { ChainStore } from '@playline/chain';
import { createRequestDurations } from '@playline/http';
import type { Metrics } from '@playline/runtime';
import type { Chain } from './chains.ts';
import type { LookupOutcome } from './token-lookup.ts';

export type ChainApiMetrics = ReturnType<typeof createChainApiMetrics>;

const READ_BUCKETS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** Labels are few and fixed: no addresses, no ids. */
export function createChainApiMetrics(metrics: Metrics) {
  const refused = metrics.counter('playline_chain_api_rate_limited_total', 'Requests refused, by the limit', ['limit']);
  const oldHorizon = metrics.counter(
    'playline_chain_api_stale_horizon_pages_total',
    'Pages read under the last horizon that was known, because none could be read',
  );
  const reads = metrics.histogram('playline_chain_api_read_duration_seconds', 'Time of a read of the store', {
    bucketsSeconds: READ_BUCKETS_S,
    labelNames: ['operation'],
  });
  const lookups = metrics.counter(
    'playline_chain_api_token_lookups_total',
    'Contracts read from nodes because the store does not have them',
    ['outcome'],
  );
  return {
    onAnswer: createRequestDurations(metrics),
    onRefused: (limit: string) => refused.inc({ limit }),
    onOldHorizon: () => oldHorizon.inc(),
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

/** The lag of the feed is the difference to the current time. */
export function showHorizons(
  metrics: Metrics,
  chains: readonly Chain[],
  known: (partition: number) => number | null,
): void {
  metrics.collectedGauge(
    'playline_chain_api_horizon_timestamp_seconds',
    'Time up to which activities of a chain are served, as last read',
    {
      labelNames: ['chain'],
      collect: (gauge) => {
        for (const { name, partition } of chains) {
          const watermark = known(partition);
          if (watermark !== null) gauge.set({ chain: name }, watermark / 1_000_000);
        }
      },
    },
  );
}
