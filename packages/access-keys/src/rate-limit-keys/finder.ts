import { hashKey, isRateLimitKeyText } from '../key-text.ts';
import type { RecordCopy } from '../records/record-copy.ts';
import { KeyStoreFault } from '../verifier.ts';
import { isGoodAt, type RateLimitKeyRecord } from './rate-limit-key.ts';

export interface RateLimitKeyFinderOptions {
  readonly copy: Pick<RecordCopy<RateLimitKeyRecord>, 'records' | 'ageMs' | 'isFailing' | 'refresh'>;
  /** ACCESS_KEY_PREFIX, such as `svcapik`. */
  readonly prefix: string;
  /** Keys expire at an instant. */
  readonly wallClockMs?: () => number;
}

/**
 * Finds the key of a text.
 * @returns null for a text that is malformed or nobody's, and for a key that was revoked, refreshed away or has expired
 * @throws KeyStoreFault when nobody can say: a fault of ours, never of the caller's key
 */
export type FindRateLimitKey = (text: string) => Promise<RateLimitKeyRecord | null>;

/** Older knowledge is looked at again: with the bound of a look a key ends within 750 ms. */
const TRUST_MAX_MS = 500;
/** While the view cannot say, a key that was good stays good this long: an outage of it must not stop partners. */
const OUTAGE_TRUST_MAX_MS = 15 * 60 * 1000;

/** Builds the finder of a process. A text of the wrong form costs nothing, a guess joins one question that all guesses share. */
export function createRateLimitKeyFinder(options: RateLimitKeyFinderOptions): FindRateLimitKey {
  const { copy, prefix, wallClockMs = Date.now } = options;
  const byHash = createIndex(copy);
  const isTrusted = () => copy.ageMs <= (copy.isFailing ? OUTAGE_TRUST_MAX_MS : TRUST_MAX_MS);
  return async (text) => {
    if (!isRateLimitKeyText(prefix, text)) return null;
    const hash = hashKey(text);
    if (!byHash().has(hash) || !isTrusted()) {
      const fault = await copy.refresh().then(
        () => null,
        (cause: unknown) => new KeyStoreFault('nobody can tell which rate limit keys there are', { cause }),
      );
      if (fault !== null && (!byHash().has(hash) || !isTrusted())) throw fault;
    }
    const record = byHash().get(hash);
    return record !== undefined && isGoodAt(record, wallClockMs()) ? record : null;
  };
}

/** The records of a copy by their hashes, made again when they have changed. */
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
