// Rate limit keys belong to partners, not to environments.
import { randomUUID } from 'node:crypto';
import { type RateLimitKeyRecord, rateLimitKeyCodec, TOPICS } from '@playline/contracts';
import { PublicError } from '@playline/errors';
import { type KeyLookupOptions, openKeyLookup } from '../keys/key-lookup.ts';
import { createRateLimitKeyText, displayPartsOf, hashKey, isRateLimitKeyText } from '../keys/key-text.ts';
import type { RecordKind } from '../records/record-log.ts';
import type { RecordStore } from '../records/record-store.ts';

export type { RateLimitKeyRecord } from '@playline/contracts';

export const RATE_LIMIT_KEYS: RecordKind<RateLimitKeyRecord> = {
  name: 'rate-limit-keys',
  topic: TOPICS.rateLimitKeys.name,
  codec: rateLimitKeyCodec,
  idOf: ({ keyId }) => keyId,
};

export interface Plan {
  /** Maximum number of calls in any window of `windowS` seconds. */
  readonly calls: number;
  readonly windowS: number;
  /** Epoch milliseconds; null if the key does not expire. */
  readonly expiresAt: number | null;
}

/** The time of every call in a window is stored, so larger plans would take megabytes of memory. */
export const PLAN_MAX = { calls: 1_000_000, windowS: 86_400 } as const;
/** Window for callers without a key, and a plan's default window. */
export const PLAN_WINDOW_S = 300;
export const PARTNER_CHARACTERS_MAX = 200;

export const isActiveAt = ({ revokedAt, expiresAt }: RateLimitKeyRecord, atMs: number): boolean =>
  revokedAt === null && (expiresAt === null || atMs < expiresAt);

interface RateLimitKeyFinderOptions extends Omit<KeyLookupOptions<RateLimitKeyRecord, RateLimitKeyRecord>, 'keysOf'> {
  readonly prefix: string;
  /** Used to check key expiry. */
  readonly wallClockMs?: () => number;
}

export function openRateLimitKeyFinder(options: RateLimitKeyFinderOptions) {
  const { prefix, wallClockMs = Date.now } = options;
  const lookup = openKeyLookup({ ...options, keysOf: (record) => [record] });
  const isWellFormed = (text: string) => isRateLimitKeyText(prefix, text);
  return {
    /** Returns null for malformed, unknown, ended and expired keys. @throws KeyStoreFault on a store failure */
    find: async (text: string) => {
      const key = await lookup.find(text, isWellFormed);
      return key !== null && isActiveAt(key, wallClockMs()) ? key : null;
    },
    refresh: lookup.refresh,
    close: lookup.close,
  };
}

export interface RateLimitKeyContext {
  readonly store: RecordStore<RateLimitKeyRecord>;
  readonly prefix: string;
}

export interface CreatedRateLimitKey {
  readonly record: RateLimitKeyRecord;
  /** Returned only once. */
  readonly key: string;
}

/** Creates a key. A partner may have several keys. */
export async function createRateLimitKey(
  { store, prefix }: RateLimitKeyContext,
  wanted: Plan & { readonly partner: string },
): Promise<CreatedRateLimitKey> {
  const { key, text } = makeText(prefix);
  const created = { ...wanted, ...text, keyId: randomUUID(), createdAt: Date.now(), revokedAt: null };
  return { record: await store.change(() => created), key };
}

/**
 * Replaces the key and the given plan members. Calls in the current window still count.
 * @throws PublicError RESOURCE_NOT_FOUND for an unknown id, CONFLICT_ERROR for a revoked key
 */
export async function refreshRateLimitKey(
  { store, prefix }: RateLimitKeyContext,
  { keyId, ...plan }: { readonly keyId: string } & Partial<Plan>,
): Promise<CreatedRateLimitKey> {
  const { key, text } = makeText(prefix);
  const record = await store.change((records) => ({ ...findLive(records, keyId), ...plan, ...text }));
  return { record, key };
}

/** Revokes a key permanently. @throws PublicError see `refreshRateLimitKey` */
export async function revokeRateLimitKey(
  { store }: Pick<RateLimitKeyContext, 'store'>,
  keyId: string,
): Promise<RateLimitKeyRecord> {
  return store.change((records) => ({ ...findLive(records, keyId), revokedAt: Date.now() }));
}

function makeText(prefix: string) {
  const key = createRateLimitKeyText(prefix);
  return { key, text: { hash: hashKey(key), ...displayPartsOf(key) } };
}

function findLive(records: readonly RateLimitKeyRecord[], keyId: string): RateLimitKeyRecord {
  const record = records.find((each) => each.keyId === keyId);
  const details = { keyId };
  if (record === undefined)
    throw new PublicError('RESOURCE_NOT_FOUND', { message: 'This rate limit key does not exist.', details });
  if (record.revokedAt === null) return record;
  throw new PublicError('CONFLICT_ERROR', { message: 'The rate limit key was revoked. Create a new key.', details });
}
