import { randomUUID } from 'node:crypto';
import { PublicError } from '@playline/errors';
import { createRateLimitKeyText, endsOfKey, hashKey } from '../keys/key-text.ts';
import type { RecordStore } from '../records/record-store.ts';
import { toDone } from '../records/record-store.ts';
import type { Plan, RateLimitKeyRecord } from './rate-limit-key.ts';

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
