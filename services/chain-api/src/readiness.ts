import type { ChainStore, Watermarks } from '@playline/chain';
import type { ReadinessChecks } from '@playline/http';
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
 * Builds the answer to `/readyz`. Horizons count only until they were read once: after that pages are served under the
 * last ones, and a service taken out for them would end just that.
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
  /** True when what the operations with secret keys need answers. */
  minting: () => Promise<boolean>;
}

/**
 * What the service may lack and still be ready: without watermarks the feed stands still, and nothing in it is wrong; without
 * rate limit keys callers who bring one that is not known yet get 500, and all others are served; without brokers nothing is
 * minted, and everything is read.
 */
export function createDegraded({ watermarks, rateLimitKeys, minting }: DegradedParts): ReadinessChecks {
  return { newActivities: watermarks.ready, rateLimitKeys: rateLimitKeys.ready, minting };
}
