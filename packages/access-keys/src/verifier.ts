import { LRUCache } from 'lru-cache';
import type { KeyRecord, KeyStore } from './key-store.ts';
import { hashKey, type KeyKind, parseKey } from './key-text.ts';

export interface KeyVerifierOptions {
  store: Pick<KeyStore, 'find'>;
  /** ACCESS_KEY_PREFIX, such as `svcapik`. */
  prefix: string;
  /** Only keys of this kind are good here. */
  kind: KeyKind;
  /** Monotonic clock in milliseconds; tests give their own. The wall clock set back would keep an ended key good. */
  now?: () => number;
  /** Keys remembered at most, good ones and unknown ones each. */
  entriesMax?: number;
  /** How long a look-up may take before the store counts as unreachable. */
  lookUpMaxMs?: number;
}

/**
 * Tells whether a key text is good now. The answer comes without a promise when it is cached, which is nearly always.
 * @returns the record, or null for a key that is malformed, unknown, ended or of the other kind
 * @throws KeyStoreFault (or rejects with it) when the store cannot answer and nothing usable is cached
 */
export type KeyVerifier = (key: string) => KeyRecord | null | Promise<KeyRecord | null>;

/** The key store cannot answer and no cached answer may stand in for it: a fault of ours, never of the caller's key. */
export class KeyStoreFault extends Error {
  override readonly name = 'KeyStoreFault';
}

/** From this age on an answer is looked up again without making anybody wait. */
const REFRESH_AFTER_MS = 250;
/** Older answers wait for the look-up. With the look-up's bound the old key ends in 750 ms. */
const TRUST_MAX_MS = 500;
/** After a failed look-up cached answers stand this long: 500 + 250 + 200 ms keeps one slow look-up within the second. */
const OUTAGE_PAUSE_MS = 200;
/** While the store is unreachable a cached key stays good this long: an outage of it must not stop ingest. */
const OUTAGE_TRUST_MAX_MS = 15 * 60 * 1000;
/** See TRUST_MAX_MS; a healthy look-up takes a millisecond. */
const LOOK_UP_MAX_MS = 250;
/** A gateway serves far fewer environments than this; it only bounds memory (about 500 bytes each). */
const ENTRIES_MAX = 10_000;

interface Answer {
  readonly record: KeyRecord;
  /** When the look-up that confirmed it began: what changed since then is not known. */
  readonly confirmedAt: number;
}

/** Builds a verifier with its own cache; one for each kind of key and process. */
export function createKeyVerifier(options: KeyVerifierOptions): KeyVerifier {
  const { prefix, kind, now = () => performance.now() } = options;
  const answers = new AnswerCache(options, now);

  const outlastOutage = (answer: Answer, fault: unknown): KeyRecord => {
    if (now() - answer.confirmedAt <= OUTAGE_TRUST_MAX_MS) return answer.record;
    throw fault;
  };

  return (key) => {
    const answer = answers.good(key);
    if (answer !== undefined) {
      const age = now() - answer.confirmedAt;
      if (age <= REFRESH_AFTER_MS) return answer.record;
      if (age <= TRUST_MAX_MS) {
        answers.lookUp(key).catch(() => {});
        return answer.record;
      }
      // Within an outage only one request in 200 ms waits for the bound; the others are answered from the cache.
      if (answers.isOutage() && age <= OUTAGE_TRUST_MAX_MS) return answer.record;
      return answers.lookUp(key).catch((fault: unknown) => outlastOutage(answer, fault));
    }
    if (answers.isUnknown(key) || parseKey(prefix, key)?.kind !== kind) return null;
    return answers.lookUp(key);
  };
}

/** What look-ups have told, and the look-ups under way. */
class AnswerCache {
  // By key text, so that the common case hashes nothing. The text is in the request anyway; it is never written out.
  readonly #good: LRUCache<string, Answer>;
  // Apart from the good ones, so that a flood of invented keys cannot push those out.
  readonly #unknown: LRUCache<string, number>;
  readonly #lookUps = new Map<string, Promise<KeyRecord | null>>();
  readonly #options: KeyVerifierOptions;
  readonly #now: () => number;
  #outageUntil = 0;

  constructor(options: KeyVerifierOptions, now: () => number) {
    const max = options.entriesMax ?? ENTRIES_MAX;
    this.#good = new LRUCache({ max });
    this.#unknown = new LRUCache({ max });
    this.#options = options;
    this.#now = now;
  }

  good(key: string): Answer | undefined {
    return this.#good.get(key);
  }

  isUnknown(key: string): boolean {
    const since = this.#unknown.get(key);
    return since !== undefined && this.#now() - since <= TRUST_MAX_MS;
  }

  /** True for a short while after a look-up has failed. */
  isOutage(): boolean {
    return this.#now() < this.#outageUntil;
  }

  /** One look-up at a time for each key, however many requests wait for it. */
  lookUp(key: string): Promise<KeyRecord | null> {
    const running = this.#lookUps.get(key);
    if (running !== undefined) return running;
    const started = this.#askStore(key).finally(() => this.#lookUps.delete(key));
    this.#lookUps.set(key, started);
    return started;
  }

  async #askStore(key: string): Promise<KeyRecord | null> {
    const { store, kind, lookUpMaxMs = LOOK_UP_MAX_MS } = this.#options;
    const startedAt = this.#now();
    let record: KeyRecord | null;
    try {
      record = await within(store.find(hashKey(key)), lookUpMaxMs);
    } catch (cause) {
      this.#outageUntil = this.#now() + OUTAGE_PAUSE_MS;
      throw new KeyStoreFault('the key store does not answer', { cause });
    }
    this.#outageUntil = 0;
    if (record !== null && record.kind === kind && record.revokedAt === null) {
      this.#good.set(key, { record, confirmedAt: startedAt });
      return record;
    }
    this.#good.delete(key);
    this.#unknown.set(key, startedAt);
    return null;
  }
}

async function within<T>(work: Promise<T>, boundMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const bound = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${boundMs} ms`)), boundMs);
  });
  try {
    return await Promise.race([work, bound]);
  } finally {
    clearTimeout(timer);
  }
}
