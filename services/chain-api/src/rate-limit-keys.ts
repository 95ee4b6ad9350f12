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
  /** True when all keys that there are now are known here. */
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

/**
 * Opens the rate limit keys as Redis has them; gateways keep it level with the log. All of them stand in this process, looked
 * at twice a second, so that a call with a key needs no question to Redis.
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
