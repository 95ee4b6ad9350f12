import { randomUUID } from 'node:crypto';
import { type RateLimitKeyRecord, rateLimitKeyCodec, TOPICS } from '@playline/contracts';
import { PublicError } from '@playline/errors';
import { type KeyLookup, type KeyLookupOptions, openKeyLookup } from '../keys/key-lookup.ts';
import { createRateLimitKeyText, endsOfKey, hashKey, isRateLimitKeyText } from '../keys/key-text.ts';
import type { RecordKind } from '../records/record-log.ts';
import { type RecordStore, toDone } from '../records/record-store.ts';

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

/**
 * Bounds of a plan. Each call of a window is remembered, so more of them than this for one caller would take megabytes.
 */
export const PLAN_MAX = { calls: 1_000_000, windowS: 86_400 } as const;
/** The window of callers without a key, and of a plan that names no other. */
export const PLAN_WINDOW_S = 300;
/** Length of the name of a partner. */
export const PARTNER_CHARACTERS_MAX = 200;

/** Whether a key is valid at an instant, in epoch milliseconds. */
export function isGoodAt({ revokedAt, expiresAt }: RateLimitKeyRecord, atMs: number): boolean {
  return revokedAt === null && (expiresAt === null || atMs < expiresAt);
}

export interface RateLimitKeyFinderOptions
  extends Omit<KeyLookupOptions<RateLimitKeyRecord, RateLimitKeyRecord>, 'keysOf'> {
  /** ACCESS_KEY_PREFIX, such as `svcapik`. */
  readonly prefix: string;
  /** Used for the expiry of keys. */
  readonly wallClockMs?: () => number;
}

export interface RateLimitKeyFinder extends Pick<KeyLookup<RateLimitKeyRecord>, 'refresh' | 'close'> {
  /**
   * Finds the key with a text.
   * @returns null for a malformed or unknown text, and for a key that was revoked, was replaced by a refresh or has
   * expired
   * @throws KeyStoreFault when the store cannot answer: that is our fault, not the caller's
   */
  find(text: string): Promise<RateLimitKeyRecord | null>;
}

/** Opens the finder of a process. */
export function openRateLimitKeyFinder(options: RateLimitKeyFinderOptions): RateLimitKeyFinder {
  const { prefix, wallClockMs = Date.now } = options;
  const lookup = openKeyLookup({ ...options, keysOf: (record) => [record] });
  const isWellFormed = (text: string) => isRateLimitKeyText(prefix, text);
  return {
    find: async (text) => {
      const key = await lookup.find(text, isWellFormed);
      return key !== null && isGoodAt(key, wallClockMs()) ? key : null;
    },
    refresh: lookup.refresh,
    close: lookup.close,
  };
}

export interface RateLimitKeyContext {
  readonly store: RecordStore<RateLimitKeyRecord>;
  /** ACCESS_KEY_PREFIX, such as `svcapik`. */
  readonly prefix: string;
}

export interface CreatedRateLimitKey {
  readonly record: RateLimitKeyRecord;
  /** The key's text. It cannot be read again. */
  readonly key: string;
}

/** Creates a key for a partner, who may have several. */
export async function createRateLimitKey(
  { store, prefix }: RateLimitKeyContext,
  wanted: Plan & { readonly partner: string },
): Promise<CreatedRateLimitKey> {
  const { key, text } = makeText(prefix);
  const made = { ...wanted, ...text, keyId: randomUUID(), createdAt: Date.now(), revokedAt: null };
  return { record: toDone(await store.change(() => made)), key };
}

/**
 * Replaces the text of a key, and the given members of its plan. The old text ends. Calls that the partner has used
 * stay counted.
 * @throws PublicError RESOURCE_NOT_FOUND when nobody has the id, CONFLICT_ERROR when the key was revoked
 */
export async function refreshRateLimitKey(
  { store, prefix }: RateLimitKeyContext,
  { keyId, ...plan }: { readonly keyId: string } & Partial<Plan>,
): Promise<CreatedRateLimitKey> {
  const { key, text } = makeText(prefix);
  const record = await store.change((records) => ({ ...findLive(records, keyId), ...plan, ...text }));
  return { record: toDone(record), key };
}

/** Revokes a key for good. @throws PublicError as `refreshRateLimitKey` */
export async function revokeRateLimitKey(
  { store }: Pick<RateLimitKeyContext, 'store'>,
  keyId: string,
): Promise<RateLimitKeyRecord> {
  return toDone(await store.change((records) => ({ ...findLive(records, keyId), revokedAt: Date.now() })));
}

function makeText(prefix: string) {
  const key = createRateLimitKeyText(prefix);
  return { key, text: { hash: hashKey(key), ...endsOfKey(key) } };
}

function findLive(records: readonly RateLimitKeyRecord[], keyId: string): RateLimitKeyRecord {
  const record = records.find((each) => each.keyId === keyId);
  const details = { keyId };
  if (record === undefined)
    throw new PublicError('RESOURCE_NOT_FOUND', { message: 'There is no such rate limit key.', details });
  if (record.revokedAt === null) return record;
  throw new PublicError('CONFLICT_ERROR', { message: 'The rate limit key was revoked: create another one.', details });
}
