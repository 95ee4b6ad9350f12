// Finds and verifies keys using an in-memory copy of their records.
import { openRecordCopy, type RecordCopy, type RecordCopyOptions, TRUST_MAX_MS } from '../records/record-copy.ts';
import type { Change } from '../records/record-log.ts';
import { type AccessKeyRecord, type KeyRecord, keysOf } from './access-key.ts';
import { hashKey, type KeyKind, parseKey } from './key-text.ts';

interface AnyKey {
  /** SHA-256 of the key, in hexadecimal. */
  readonly hash: string;
  /** Null while the key is live. An ended key never becomes valid again. */
  readonly revokedAt: number | null;
  /** When a live key stops working. */
  readonly endsAt?: number | null;
}

/** The key store does not respond, and the copy in memory is too old. */
export class KeyStoreFault extends Error {
  override readonly name = 'KeyStoreFault';
}

/** Concurrent lookups of unknown keys share one read from the store. */
export interface KeyLookup<K extends AnyKey> extends Pick<RecordCopy<unknown>, 'refresh' | 'ageMs' | 'close'> {
  /**
   * Returns the result synchronously if the key is known.
   * @param isWellFormed called before an unknown key is looked up
   * @returns null for a malformed, unknown or ended key
   * @throws KeyStoreFault, or rejects with KeyStoreFault, if the store does not respond
   */
  find(text: string, isWellFormed: (text: string) => boolean): K | null | Promise<K | null>;
  /** Returns the key if `find` has returned null because the key has ended. */
  findEnded(text: string): K | null;
  /** True if there are no keys: the deployment is new, or the store address is wrong. */
  readonly isEmpty: boolean;
}

export interface KeyLookupOptions<R extends Change, K extends AnyKey>
  extends Pick<RecordCopyOptions<R>, 'view' | 'now' | 'readEveryMs'> {
  /** Returns live and ended keys. */
  readonly keysOf: (record: R) => readonly K[];
  /** Used to check the end of a key. */
  readonly wallClockMs?: () => number;
}

/** Age at which the copy is refreshed in the background. At `TRUST_MAX_MS`, lookups wait for the refresh. */
const REFRESH_AFTER_MS = TRUST_MAX_MS / 2;
/** Minimum interval between background refreshes. */
const REFRESH_INTERVAL_MS = 200;

export function openKeyLookup<R extends Change, K extends AnyKey>(options: KeyLookupOptions<R, K>): KeyLookup<K> {
  const { now = () => performance.now(), wallClockMs = Date.now } = options;
  const byHash = new Map<string, K>();
  // Caches known keys in plain text, because hashing the key in each request would cost more.
  const byText = new Map<string, K>();
  const onChange = (before: R | undefined, after: R | undefined) => {
    byText.clear();
    if (before !== undefined) for (const { hash } of options.keysOf(before)) byHash.delete(hash);
    if (after !== undefined) for (const key of options.keysOf(after)) byHash.set(key.hash, key);
  };
  const copy = openRecordCopy({ ...options, onChange });
  let refreshedAt = Number.NEGATIVE_INFINITY;
  const refreshAhead = () => {
    if (copy.ageMs <= REFRESH_AFTER_MS || now() - refreshedAt < REFRESH_INTERVAL_MS) return;
    refreshedAt = now();
    copy.refresh().catch(() => {});
  };
  const findKnown = (text: string): K | undefined => {
    const key = byHash.get(hashKey(text));
    if (key !== undefined) byText.set(text, key);
    return key;
  };
  /** Returns the time since the key's end; negative before the end. */
  const msSinceEnd = ({ endsAt }: K) => (endsAt == null ? Number.NEGATIVE_INFINITY : wallClockMs() - endsAt);
  const isLive = (key: K) => key.revokedAt === null && msSinceEnd(key) < 0;
  const findRefreshed = async (text: string): Promise<K | null> => {
    const fault: unknown = await copy.refresh().catch((cause: unknown) => cause);
    const key = findKnown(text);
    if (key !== undefined && isLive(key) && copy.isTrusted) return key;
    if (key !== undefined && key.revokedAt !== null) return null;
    if (fault === undefined && (key === undefined || !isLive(key))) return null;
    throw new KeyStoreFault(`the ${options.view.kind.name} cannot be read from Redis`, { cause: fault });
  };
  return {
    find: (text, isWellFormed) => {
      const cached = byText.get(text);
      if (cached === undefined && !isWellFormed(text)) return null;
      const key = cached ?? findKnown(text);
      if (key === undefined || !copy.isTrusted) return findRefreshed(text);
      // An earlier copy may lack an extension. A later copy is final, because an ended key cannot be extended.
      const sinceEndMs = msSinceEnd(key);
      if (sinceEndMs >= 0 && key.revokedAt === null && copy.ageMs > sinceEndMs) return findRefreshed(text);
      refreshAhead();
      return key.revokedAt === null && sinceEndMs < 0 ? key : null;
    },
    findEnded: (text) => {
      const key = byText.get(text);
      return key === undefined || isLive(key) ? null : key;
    },
    get isEmpty() {
      return byHash.size === 0;
    },
    get ageMs() {
      return copy.ageMs;
    },
    refresh: copy.refresh,
    close: copy.close,
  };
}

export const openKeys = (options: Omit<KeyLookupOptions<AccessKeyRecord, KeyRecord>, 'keysOf'>): KeyLookup<KeyRecord> =>
  openKeyLookup({ ...options, keysOf: (record) => keysOf(record, Number.NEGATIVE_INFINITY) });

export interface KeyVerifierOptions {
  readonly keys: Pick<KeyLookup<KeyRecord>, 'find' | 'isEmpty'>;
  readonly prefix: string;
  readonly kind: KeyKind;
}

/**
 * Returns the key's record, synchronously if the key is known.
 * @returns null for a key that is malformed, unknown, ended or of another kind
 * @throws KeyStoreFault, or rejects with KeyStoreFault, if the key's validity cannot be determined
 */
export type KeyVerifier = (key: string) => KeyRecord | null | Promise<KeyRecord | null>;

export function createKeyVerifier({ keys, prefix, kind }: KeyVerifierOptions): KeyVerifier {
  const isWellFormed = (text: string) => parseKey(prefix, text)?.kind === kind;
  const check = (text: string, key: KeyRecord | null) => {
    // Clients drop messages after a 401. If there are no keys, the Redis address or topic prefix is probably wrong.
    if (key === null && keys.isEmpty && isWellFormed(text))
      throw new KeyStoreFault('there are no access keys: check the Redis address and topic prefix');
    return key?.kind === kind ? key : null;
  };
  return (text) => {
    const found = keys.find(text, isWellFormed);
    return found instanceof Promise ? found.then((key) => check(text, key)) : check(text, found);
  };
}
