import { hashKey, isRateLimitKeyText } from '../key-text.ts';
import type { RecordCopy } from '../records/record-copy.ts';
import { isTrusted } from '../records/trust.ts';
import { KeyStoreFault } from '../verifier.ts';
import { isGoodAt, type RateLimitKeyRecord } from './rate-limit-key.ts';

export interface RateLimitKeyFinderOptions {
  readonly copy: Pick<RecordCopy<RateLimitKeyRecord>, 'records' | 'ageMs' | 'isFailing' | 'refresh'>;
  /** ACCESS_KEY_PREFIX, such as `svcapik`. */
  readonly prefix: string;
  /** Used for the expiry of keys. */
  readonly wallClockMs?: () => number;
}

/**
 * Finds the key with a text.
 * @returns null for a malformed or unknown text, and for a key that was revoked, was replaced by a refresh or has
 * expired
 * @throws KeyStoreFault when the store cannot answer: that is our fault, not the caller's
 */
export type FindRateLimitKey = (text: string) => Promise<RateLimitKeyRecord | null>;

/** Creates the finder of a process. A malformed text costs nothing, and all guesses share one question to the view. */
export function createRateLimitKeyFinder(options: RateLimitKeyFinderOptions): FindRateLimitKey {
  const { copy, prefix, wallClockMs = Date.now } = options;
  const byHash = createIndex(copy);
  return async (text) => {
    if (!isRateLimitKeyText(prefix, text)) return null;
    const hash = hashKey(text);
    if (!byHash().has(hash) || !isTrusted(copy)) {
      const fault = await copy.refresh().then(
        () => null,
        (cause: unknown) => new KeyStoreFault('nobody can tell which rate limit keys there are', { cause }),
      );
      if (fault !== null && (!byHash().has(hash) || !isTrusted(copy))) throw fault;
    }
    const record = byHash().get(hash);
    return record !== undefined && isGoodAt(record, wallClockMs()) ? record : null;
  };
}

/** Index of the records of a copy by hash, rebuilt after a change. */
function createIndex(copy: Pick<RecordCopy<RateLimitKeyRecord>, 'records'>) {
  let of: readonly RateLimitKeyRecord[] = [];
  let index = new Map<string, RateLimitKeyRecord>();
  return () => {
    if (of !== copy.records) {
      of = copy.records;
      index = new Map(of.map((record) => [record.hash, record]));
    }
    return index;
  };
}
