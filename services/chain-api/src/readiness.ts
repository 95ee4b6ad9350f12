import type { ChainStore, Watermarks } from '@playline/chain';
import type { ReadinessChecks } from '@playline/http';
import { type Metrics, watchWrites } from '@playline/runtime';
import type { Chain } from './chains.ts';
import type { Horizons } from './horizons.ts';

export interface ReadinessParts {
  store: Pick<ChainStore, 'ready'>;
  horizons: Pick<Horizons, 'of'>;
  chains: readonly Chain[];
  /** False from the start of a drain. */
  accepting: () => boolean;
}

/**
 * Builds the answer to `/readyz`. Horizons count only until they were read once. After that pages are served under the
 * last ones, which taking the service out would end.
 */
export function createReadiness({ store, horizons, chains, accepting }: ReadinessParts): ReadinessChecks {
  let horizonsSeen = false;
  return {
    accepting,
    store: store.ready,
    horizons: async () => {
      if (horizonsSeen) return true;
      const read = await Promise.all(chains.map(({ partition }) => horizons.of(partition)));
      horizonsSeen = read.every((horizon) => horizon !== null);
      return horizonsSeen;
    },
  };
}

export interface DegradedParts {
  watermarks: Pick<Watermarks, 'ready'>;
  rateLimitKeys: { ready(): Promise<boolean> };
  minting: {
    /** True when the stores for operations with secret keys answer, and Redis takes writes. */
    ready(): Promise<boolean>;
    /** Of Redis alone. */
    takesWrites(): Promise<boolean>;
  };
  metrics: Metrics;
}

/**
 * Builds the checks that leave the service ready. Without watermarks the feed stops, but it stays correct. Without rate
 * limit keys, calls with a key that is not in memory get 500, and all others are served. Without brokers nothing is
 * minted, but reads go on.
 */
export function createDegraded({ watermarks, rateLimitKeys, minting, metrics }: DegradedParts): ReadinessChecks {
  watchWrites(metrics, minting.takesWrites);
  return { newActivities: watermarks.ready, rateLimitKeys: rateLimitKeys.ready, minting: minting.ready };
}
