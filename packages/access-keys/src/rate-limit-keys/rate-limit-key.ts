import { type RateLimitKeyRecord, rateLimitKeyCodec, TOPICS } from '@playline/contracts';
import type { RecordKind } from '../records/record-log.ts';

export type { RateLimitKeyRecord } from '@playline/contracts';

/** Rate limit keys: they belong to partners, and to no environment. */
export const RATE_LIMIT_KEYS: RecordKind<RateLimitKeyRecord> = {
  name: 'rate-limit-keys',
  topic: TOPICS.rateLimitKeys.name,
  codec: rateLimitKeyCodec,
  idOf: ({ keyId }) => keyId,
};

/** Rate limit of a partner. */
export interface Plan {
  /** Most calls in any window of `windowS` seconds. */
  readonly calls: number;
  readonly windowS: number;
  /** Epoch milliseconds from which on the key is not valid; null: until it is revoked. */
  readonly expiresAt: number | null;
}

/** Whether a key is valid at an instant, in epoch milliseconds. */
export function isGoodAt({ revokedAt, expiresAt }: RateLimitKeyRecord, atMs: number): boolean {
  return revokedAt === null && (expiresAt === null || atMs < expiresAt);
}
