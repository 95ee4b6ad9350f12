import { openRateLimitKeyFinder, type RateLimitKeyRecord, type RecordView } from '@playline/access-keys';
import type { RateLimitKeys } from './admit-call.ts';

export interface RateLimitKeysParts {
  /** Of `RATE_LIMIT_KEYS`; closed with the keys. */
  view: RecordView<RateLimitKeyRecord> & { close(): Promise<void> };
  /** ACCESS_KEY_PREFIX */
  prefix: string;
}

export interface OpenRateLimitKeys extends RateLimitKeys {
  /** True when this process knows all present keys. */
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

/**
 * Opens the rate limit keys of Redis, which gateways keep in sync with the log. All keys are in memory and confirmed
 * twice a second, so that a call with a key needs no query.
 */
export function openRateLimitKeys({ view, prefix }: RateLimitKeysParts): OpenRateLimitKeys {
  const { find, refresh, close } = openRateLimitKeyFinder({ view, prefix });
  return {
    find,
    ready: () =>
      refresh().then(
        () => true,
        () => false,
      ),
    close: async () => {
      close();
      await view.close();
    },
  };
}
