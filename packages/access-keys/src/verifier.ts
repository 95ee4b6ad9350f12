import { answerWithin } from '@playline/errors';
import { LRUCache } from 'lru-cache';
import type { KeyRecord, KeyStore } from './key-store.ts';
import { hashKey, type KeyKind, parseKey } from './key-text.ts';
import type { LiveKeys } from './live-keys.ts';
import { OUTAGE_TRUST_MAX_MS, TRUST_MAX_MS } from './records/trust.ts';

export interface KeyVerifierOptions {
  /** `live`: the list of live keys. Without it every unknown key is looked up. */
  store: Pick<KeyStore, 'find'> & { readonly live?: LiveKeys };
  /** ACCESS_KEY_PREFIX, such as `svcapik`. */
  prefix: string;
  /** Only keys of this kind are valid here. */
  kind: KeyKind;
  /**
   * Monotonic clock in milliseconds, replaced in tests. If the wall clock were set back, an ended key would stay valid.
   */
  now?: () => number;
  /** Most valid keys in the cache. */
  entriesMax?: number;
}

/**
 * Whether a key text is valid now. Answers without a promise when it is cached, as almost always.
 * @returns the record, or null for a key that is malformed, unknown, ended or of the other kind
 * @throws KeyStoreFault (or rejects with it) when the store cannot answer and nothing usable is cached
 */
export type KeyVerifier = (key: string) => KeyRecord | null | Promise<KeyRecord | null>;

/**
 * The key store cannot answer, and no cached answer can replace it. This is our fault, not that of the caller's key.
 */
export class KeyStoreFault extends Error {
  override readonly name = 'KeyStoreFault';
}

/** From this age on an answer is refreshed in the background; from TRUST_MAX_MS on a request waits for that. */
const REFRESH_AFTER_MS = 250;
/**
 * After a failed look-up cached answers are used for so long. TRUST_MAX_MS + 250 + 200 ms keep one slow look-up within a second.
 */
const OUTAGE_PAUSE_MS = 200;
/** After this the store counts as unreachable, see TRUST_MAX_MS. A healthy look-up takes a millisecond. */
const LOOK_UP_MAX_MS = 250;
/** At most twenty look-ups a second of keys that are not in the list of live keys. */
const SPARE_EVERY_MS = 50;
/** Bounds memory (about 500 bytes each). A gateway serves far fewer environments. */
const ENTRIES_MAX = 10_000;

interface Answer {
  readonly record: KeyRecord;
  /** When the look-up that confirmed it began. Later changes are unknown. */
  readonly confirmedAt: number;
}

/** Creates a verifier with its own cache. A process needs one per kind of key. */
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
      // During an outage only one request per 200 ms waits for a look-up; the others get the cached answer.
      if (answers.isOutage() && age <= OUTAGE_TRUST_MAX_MS) return answer.record;
      return answers.lookUp(key).catch((fault: unknown) => outlastOutage(answer, fault));
    }
    if (parseKey(prefix, key)?.kind !== kind) return null;
    return answers.lookUpNew(key);
  };
}

/** Cached answers, and look-ups in flight. */
class AnswerCache {
  // By key text, so that the common case needs no hash. The text is in the request anyway, and is never logged.
  readonly #good: LRUCache<string, Answer>;
  readonly #lookUps = new Map<string, Promise<KeyRecord | null>>();
  readonly #options: KeyVerifierOptions;
  readonly #now: () => number;
  #outageUntil = 0;
  #spareAt = Number.NEGATIVE_INFINITY;

  constructor(options: KeyVerifierOptions, now: () => number) {
    const max = options.entriesMax ?? ENTRIES_MAX;
    this.#good = new LRUCache({ max });
    this.#options = options;
    this.#now = now;
  }

  good(key: string): Answer | undefined {
    return this.#good.get(key);
  }

  /** True for a short while after a look-up has failed. */
  isOutage(): boolean {
    return this.#now() < this.#outageUntil;
  }

  /**
   * Looks up a key that is not cached as valid. It first refreshes the list of live keys, once for all concurrent
   * callers, so a key that does not exist costs the store nothing. Guesses are cheap to make, and must not slow others
   * down.
   */
  async lookUpNew(key: string): Promise<KeyRecord | null> {
    const { live } = this.#options.store;
    if (live === undefined) return this.lookUp(key);
    const hash = hashKey(key);
    if (live.has(hash)) return this.lookUp(key);
    // A fault of the list does not count as an outage: otherwise guesses could keep valid keys from being refreshed.
    const fault = await this.#refreshFault(live);
    if (live.has(hash)) return this.lookUp(key);
    // The list may lack a key that was made by a release without lists. A limited number of look-ups finds it.
    if (this.#now() - this.#spareAt < SPARE_EVERY_MS) {
      if (fault === null) return null;
      throw fault;
    }
    this.#spareAt = this.#now();
    const record = await this.lookUp(key);
    if (record !== null) live.add(hash);
    return record;
  }

  async #refreshFault(live: LiveKeys): Promise<KeyStoreFault | null> {
    try {
      await answerWithin(LOOK_UP_MAX_MS, live.refresh());
      return null;
    } catch (cause) {
      return new KeyStoreFault('the list of live keys cannot be had', { cause });
    }
  }

  /** One look-up at a time for each key, however many requests wait for it. */
  lookUp(key: string): Promise<KeyRecord | null> {
    const running = this.#lookUps.get(key);
    if (running !== undefined) return running;
    const started = this.#askStore(key).finally(() => this.#lookUps.delete(key));
    this.#lookUps.set(key, started);
    return started;
  }

  /** @throws KeyStoreFault when the store does not answer in time */
  async #askStore(key: string): Promise<KeyRecord | null> {
    const { store, kind } = this.#options;
    const startedAt = this.#now();
    let record: KeyRecord | null;
    try {
      record = await answerWithin(LOOK_UP_MAX_MS, store.find(hashKey(key)));
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
    return null;
  }
}
