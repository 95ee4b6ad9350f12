import {
  createRateLimitKeyFinder,
  openRecordCopy,
  RATE_LIMIT_KEYS,
  type RateLimitKeyRecord,
  type RecordKind,
  type RecordView,
} from '@playline/access-keys';
import type { RateLimitKeys } from './admit-call.ts';

export interface RateLimitKeysParts<Redis> {
  /** What opens the view: the composition root knows it. */
  openRedisRecords: (
    kind: RecordKind<RateLimitKeyRecord>,
    options: Redis,
  ) => Promise<RecordView<RateLimitKeyRecord> & { close(): Promise<void> }>;
  /** How Redis is connected to. */
  redis: Redis;
  /** ACCESS_KEY_PREFIX */
  prefix: string;
}

export interface OpenRateLimitKeys extends RateLimitKeys {
  /** True while what is known of keys is known to be all of it. */
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

/**
 * Opens the rate limit keys as Redis has them; gateways keep it level with the log. All of them stand in this process, looked
 * at four times a second, so that a call with a key asks nobody.
 */
export async function openRateLimitKeys<Redis>(parts: RateLimitKeysParts<Redis>): Promise<OpenRateLimitKeys> {
  const view = await parts.openRedisRecords(RATE_LIMIT_KEYS, parts.redis);
  const copy = openRecordCopy({ view });
  return {
    find: createRateLimitKeyFinder({ copy, prefix: parts.prefix }),
    ready: async () => !copy.isFailing && Number.isFinite(copy.ageMs),
    close: async () => {
      copy.close();
      await view.close();
    },
  };
}
