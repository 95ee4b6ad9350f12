// Finds and verifies keys from a copy of their records in this process.
import { openRecordCopy, type RecordCopy, type RecordCopyOptions, TRUST_MAX_MS } from '../records/record-copy.ts';
import type { Change } from '../records/record-log.ts';
import { type AccessKeyRecord, type KeyRecord, keysOf } from './access-key.ts';
import { hashKey, type KeyKind, parseKey } from './key-text.ts';

interface AnyKey {
  /** SHA-256 of the text, hexadecimal. */
  readonly hash: string;
  /** An ended key never becomes valid again. */
  readonly revokedAt: number | null;
}

/** The store of keys cannot answer, and no earlier answer can replace it. */
export class KeyStoreFault extends Error {
  override readonly name = 'KeyStoreFault';
}

/** Unknown keys share reads of the store. */
export interface KeyLookup<K extends AnyKey> extends Pick<RecordCopy<unknown>, 'refresh' | 'ageMs' | 'close'> {
  /**
   * Answers without a promise when the key is known.
   * @param isWellFormed checked first for an unknown text
   * @returns null for a malformed, unknown or ended key
   * @throws KeyStoreFault (or rejects with it) when the store cannot answer
   */
  find(text: string, isWellFormed: (text: string) => boolean): K | null | Promise<K | null>;
  /** True without any key: a new deployment, or a wrong address. */
  readonly isEmpty: boolean;
}

export interface KeyLookupOptions<R extends Change, K extends AnyKey>
  extends Pick<RecordCopyOptions<R>, 'view' | 'now' | 'readEveryMs'> {
  /** Ended ones too. */
  readonly keysOf: (record: R) => readonly K[];
}

/** The copy is refreshed in the background from this age, and before an answer from `TRUST_MAX_MS`. */
const REFRESH_AFTER_MS = TRUST_MAX_MS / 2;
/** Least time between two refreshes in the background. */
const REFRESH_EVERY_MS = 200;

export function openKeyLookup<R extends Change, K extends AnyKey>(options: KeyLookupOptions<R, K>): KeyLookup<K> {
  const { now = () => performance.now() } = options;
  const byHash = new Map<string, K>();
  // Texts of known keys only, because hashing each request would cost more.
  const byText = new Map<string, K>();
  const onChange = (before: R | undefined, after: R | undefined) => {
    byText.clear();
    if (before !== undefined) for (const { hash } of options.keysOf(before)) byHash.delete(hash);
    if (after !== undefined) for (const key of options.keysOf(after)) byHash.set(key.hash, key);
  };
  const copy = openRecordCopy({ ...options, onChange });
  let refreshedAt = Number.NEGATIVE_INFINITY;
  const refreshAhead = () => {
    if (copy.ageMs <= REFRESH_AFTER_MS || now() - refreshedAt < REFRESH_EVERY_MS) return;
    refreshedAt = now();
    copy.refresh().catch(() => {});
  };
  const known = (text: string): K | undefined => {
    const key = byHash.get(hashKey(text));
    if (key !== undefined) byText.set(text, key);
    return key;
  };
  const refreshed = async (text: string): Promise<K | null> => {
    const fault: unknown = await copy.refresh().catch((cause: unknown) => cause);
    const key = known(text);
    if (key?.revokedAt === null && copy.isTrusted) return key;
    if (key !== undefined && key.revokedAt !== null) return null;
    if (key === undefined && fault === undefined) return null;
    throw new KeyStoreFault(`${options.view.kind.name} cannot be read from Redis`, { cause: fault });
  };
  return {
    find: (text, isWellFormed) => {
      const cached = byText.get(text);
      if (cached === undefined && !isWellFormed(text)) return null;
      const key = cached ?? known(text);
      if (key === undefined || !copy.isTrusted) return refreshed(text);
      refreshAhead();
      return key.revokedAt === null ? key : null;
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
  openKeyLookup({ ...options, keysOf });

export interface KeyVerifierOptions {
  readonly keys: Pick<KeyLookup<KeyRecord>, 'find' | 'isEmpty'>;
  readonly prefix: string;
  readonly kind: KeyKind;
}

/**
 * Answers without a promise when the key is known.
 * @returns null for a key that is malformed, unknown, ended or of another kind
 * @throws KeyStoreFault (or rejects with it) when that is not certain
 */
export type KeyVerifier = (key: string) => KeyRecord | null | Promise<KeyRecord | null>;

export function createKeyVerifier({ keys, prefix, kind }: KeyVerifierOptions): KeyVerifier {
  const isWellFormed = (text: string) => parseKey(prefix, text)?.kind === kind;
  const check = (text: string, key: KeyRecord | null) => {
    // Clients drop messages after a 401. Without any key, a wrong Redis or topic prefix is more likely.
    if (key === null && keys.isEmpty && isWellFormed(text)) throw new KeyStoreFault('there are no access keys at all');
    return key?.kind === kind ? key : null;
  };
  return (text) => {
    const found = keys.find(text, isWellFormed);
    return found instanceof Promise ? found.then((key) => check(text, key)) : check(text, found);
  };
}
