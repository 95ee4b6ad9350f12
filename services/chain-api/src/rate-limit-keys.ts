import {
  createRateLimitKeyFinder,
  openRecordCopy,
  type RateLimitKeyRecord,
  type RecordView,
} from '@playline/access-keys';
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
 * Opens the rate limit keys of Redis, which gateways keep up to date with the log. All keys are in memory and refreshed
 * twice a second, so that a call with a key does not ask Redis.
 */
export function openRateLimitKeys({ view, prefix }: RateLimitKeysParts): OpenRateLimitKeys {
  const copy = openRecordCopy({ view });
  return {
    find: createRateLimitKeyFinder({ copy, prefix }),
    ready: () =>
      copy.refresh().then(
        () => true,
        () => false,
      ),
    close: async () => {
      copy.close();
      await view.close();
    },
  };
}
