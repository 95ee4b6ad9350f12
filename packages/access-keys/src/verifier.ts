import { answerWithin } from '@playline/errors';
import { LRUCache } from 'lru-cache';
import type { KeyRecord, KeyStore } from './key-store.ts';
import { hashKey, type KeyKind, parseKey } from './key-text.ts';
import type { LiveKeys } from './live-keys.ts';

export interface KeyVerifierOptions {
  /** `live`: which keys there are at all; without it every key is looked up. */
  store: Pick<KeyStore, 'find'> & { readonly live?: LiveKeys };
  /** ACCESS_KEY_PREFIX, such as `svcapik`. */
  prefix: string;
  /** Only keys of this kind are good here. */
  kind: KeyKind;
  /** Monotonic clock in milliseconds; tests give their own. The wall clock set back would keep an ended key good. */
  now?: () => number;
  /** Good keys remembered at most. */
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
/** Twenty look-ups a second at most for keys that the list of live ones lacks. */
const SPARE_EVERY_MS = 50;
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
    if (parseKey(prefix, key)?.kind !== kind) return null;
    return answers.lookUpNew(key);
  };
}

/** What look-ups have told, and the look-ups under way. */
class AnswerCache {
  // By key text, so that the common case hashes nothing. The text is in the request anyway; it is never written out.
  readonly #good: LRUCache<string, Answer>;
  readonly #lookUps = new Map<string, Promise<KeyRecord | null>>();
  readonly #options: KeyVerifierOptions;
  readonly #now: () => number;
  readonly #lookUpMaxMs: number;
  #outageUntil = 0;
  #spareAt = Number.NEGATIVE_INFINITY;

  constructor(options: KeyVerifierOptions, now: () => number) {
    const max = options.entriesMax ?? ENTRIES_MAX;
    this.#good = new LRUCache({ max });
    this.#options = options;
    this.#lookUpMaxMs = options.lookUpMaxMs ?? LOOK_UP_MAX_MS;
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
   * Looks up a key that was not good the last time. One that nobody made costs the store nothing: the list of live keys
   * is asked, once for all who wait. So guesses, which cost their caller nothing either, starve nobody.
   */
  async lookUpNew(key: string): Promise<KeyRecord | null> {
    const { live } = this.#options.store;
    if (live === undefined) return this.lookUp(key);
    const hash = hashKey(key);
    if (live.has(hash)) return this.lookUp(key);
    // No sign that records cannot be had: guesses would otherwise keep good keys from being looked at again.
    const fault = await this.#refreshFault(live);
    if (live.has(hash)) return this.lookUp(key);
    // The list may lack a key, when a release made it that kept none: seen unless the spare look-ups are all taken.
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
      await answerWithin(this.#lookUpMaxMs, live.refresh());
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
      record = await answerWithin(this.#lookUpMaxMs, store.find(hashKey(key)));
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
