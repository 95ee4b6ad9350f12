import { TOPICS } from '@playline/contracts';
import type { ErasureGuards } from '@playline/people';
import type { StreamRecord } from '@playline/stream';
import { findFree, type HeldFact } from './find-free.ts';
import type { Publish } from './publish.ts';
import { toLeftMark, toRecords, toWaiting, type WaitingFact } from './waiting-fact.ts';

/** A fact of the parked place, and whom it touches. */
export interface PlacedFact {
  readonly record: StreamRecord;
  readonly environmentId: string;
  /** Hexadecimal. */
  readonly messageId: string;
  /** Epoch milliseconds. */
  readonly receivedAt: number;
  /** Identity keys of all its steps, hexadecimal. */
  readonly keys: readonly string[];
}

/** Facts of one partition of the parked place for as long as it is ours. Offsets from `firstWaiting` on must not be committed. */
export interface ParkedPlace {
  /** Takes facts in the order of the log; resolves when there is room for more. */
  add(facts: readonly PlacedFact[]): Promise<void>;
  /** Lowest offset of a fact that stands nowhere else yet; null when none waits. */
  firstWaiting(): number | null;
  /** Facts that wait. */
  count(): number;
}

/** When facts of the parked place are looked at, and written anew. */
export interface PlacePace {
  readonly lookEveryMs: number;
  /** Facts that stand in the log for longer are written anew at its end, before its retention may take them. */
  readonly renewAfterMs: number;
  /** Of one partition. Beyond it those that waited first go to the end of the log, for those behind them to be looked at. */
  readonly waitingBytesMax: number;
  /** At least so long between two times that this is done: with many facts, each is looked at in its turn. */
  readonly turnEveryMs: number;
}

/**
 * A look costs Redis some 35 µs a person held, in calls of up to a hundred. The bytes are some 10,000 facts of usual size, and
 * half of them go to the end at once: a hundred thousand facts take their turns within some ten minutes, for 140 kB/s of
 * writing.
 */
export const PLACE_PACE: PlacePace = {
  lookEveryMs: 1_000,
  renewAfterMs: TOPICS.parkedLinks.retentionMs / 3,
  waitingBytesMax: 8 * 1024 * 1024,
  turnEveryMs: 30_000,
};

export interface ParkedPlaceOptions {
  readonly guards: Pick<ErasureGuards, 'heldFrom'>;
  readonly publish: Publish;
  /** Where facts go that nobody holds any more. */
  readonly linkTopic: string;
  /** Aborted when the partition is not ours any more: what waits is somebody else's then. */
  readonly signal: AbortSignal;
  /** Told when facts stand elsewhere: more may be committed. */
  onLeft(): void;
  /** Told of every look that failed; the next one comes all the same. */
  onFault(fault: unknown): void;
  /** Default: that of a deployment. */
  readonly pace?: PlacePace;
}

/**
 * Creates what looks after the facts of one partition that wait for long erasures. Their offsets are not committed
 * until each is acknowledged in another place: on the link topic once nobody holds it, else at the end of this log.
 */
export function createParkedPlace(options: ParkedPlaceOptions): ParkedPlace {
  return new Place(options);
}

interface Placed extends WaitingFact, HeldFact {
  /** Epoch milliseconds: since when it stands in the log, or a copy that has not come back yet. */
  writtenAtMs: number;
}

/** A key as text. */
const KEY_BYTES = 48;

class Place implements ParkedPlace {
  readonly #options: ParkedPlaceOptions;
  readonly #pace: PlacePace;
  /** By the name of the fact, in the order of their places in the log. */
  readonly #waiting = new Map<string, Placed>();
  #waitingBytes = 0;
  #turnedAtMs = performance.now();
  #timer: NodeJS.Timeout | null = null;
  #isLooking = false;
  #looked = Promise.withResolvers<void>();

  constructor(options: ParkedPlaceOptions) {
    this.#options = options;
    this.#pace = options.pace ?? PLACE_PACE;
    options.signal.addEventListener('abort', () => this.#end(), { once: true });
  }

  async add(facts: readonly PlacedFact[]): Promise<void> {
    const { signal } = this.#options;
    if (signal.aborted) return;
    for (const fact of facts) this.#put(fact);
    this.#schedule();
    while (this.#waitingBytes > this.#pace.waitingBytesMax && !signal.aborted) await this.#looked.promise;
  }

  firstWaiting(): number | null {
    const [first] = this.#waiting.values();
    return first?.offset ?? null;
  }

  count(): number {
    return this.#waiting.size;
  }

  /** Of a fact that was written twice the later copy is enough: it stands in the log as well, and is not committed either. */
  #put({ record, environmentId, messageId, receivedAt, keys }: PlacedFact): void {
    const fact = toWaiting(
      record,
      keys.map((key) => Buffer.from(key, 'hex')),
    );
    const name = `${environmentId}/${messageId}/${fact.firstOffset}`;
    const known = this.#waiting.get(name);
    if (known !== undefined) this.#remove([[name, known]]);
    const bytes = fact.bytes + keys.length * KEY_BYTES;
    const placed = { ...fact, bytes, environmentId, receivedAt, keys, heldBy: null, writtenAtMs: record.timestampMs };
    this.#waiting.set(name, placed);
    this.#waitingBytes += bytes;
  }

  #remove(facts: readonly [name: string, fact: Placed][]): void {
    for (const [name, fact] of facts) {
      // Written anew, it may have come back already: that copy is not committed either.
      if (this.#waiting.get(name) !== fact) continue;
      this.#waiting.delete(name);
      this.#waitingBytes -= fact.bytes;
    }
  }

  #schedule(): void {
    if (this.#timer !== null || this.#isLooking || this.#options.signal.aborted || this.#waiting.size === 0) return;
    this.#timer = setTimeout(() => void this.#look(), this.#pace.lookEveryMs);
  }

  async #look(): Promise<void> {
    const { guards, linkTopic, onFault } = this.#options;
    this.#timer = null;
    this.#isLooking = true;
    try {
      const free = await findFree([...this.#waiting.values()], guards);
      const freed = new Set(free);
      await this.#move((fact) => freed.has(fact), linkTopic);
      await this.#markLeft(free);
    } catch (fault) {
      onFault(fault);
    }
    // Also while Redis cannot be asked: retention does not wait.
    await this.#writeAnew().catch(onFault);
    this.#isLooking = false;
    this.#looked.resolve();
    this.#looked = Promise.withResolvers();
    this.#schedule();
  }

  /**
   * Writes facts again at the end of the log, for one of two reasons. A fact is so old that retention may take it: then
   * all of them are written, so that those of a person stay together, and they are looked after here until they come
   * back. Or too many wait: then those that have waited longest are written, and leave this process.
   */
  async #writeAnew(): Promise<void> {
    const { renewAfterMs, waitingBytesMax, turnEveryMs } = this.#pace;
    const facts = [...this.#waiting.values()];
    const [first] = facts;
    if (first === undefined || this.#options.signal.aborted) return;
    const { topic } = first.outgoing;
    const lookedAtMs = Date.now();
    if (facts.some(({ writtenAtMs }) => writtenAtMs + renewAfterMs < lookedAtMs)) {
      await this.#options.publish(toRecords(facts, topic));
      for (const fact of facts) fact.writtenAtMs = lookedAtMs;
    }
    if (this.#waitingBytes <= waitingBytesMax || performance.now() - this.#turnedAtMs < turnEveryMs) return;
    this.#turnedAtMs = performance.now();
    let surplus = this.#waitingBytes - waitingBytesMax / 2;
    const isSurplus = (fact: Placed) => {
      surplus -= fact.bytes;
      return surplus + fact.bytes > 0;
    };
    await this.#move(isSurplus, topic);
  }

  async #move(isDue: (fact: Placed) => boolean, topic: string): Promise<void> {
    const { publish, signal, onLeft } = this.#options;
    const due = [...this.#waiting].filter(([, fact]) => isDue(fact));
    if (due.length === 0 || signal.aborted) return;
    const facts = due.map(([, fact]) => fact);
    // Nobody knows what stands there after a fault. Twice does no harm: the second decision says `unchanged`.
    await publish(toRecords(facts, topic));
    this.#remove(due);
    if (!signal.aborted) onLeft();
  }

  /**
   * Writes a mark into the parked place: which facts have left it. Needed where an older fact still waits, since the
   * committed offset cannot say it then. The mark comes after the facts, and once: before them it might be false, and
   * facts without a mark merely count as waiting until the commit has passed them.
   */
  async #markLeft(facts: readonly Placed[]): Promise<void> {
    const first = this.firstWaiting();
    const unseen = facts.filter(({ offset }) => first !== null && offset > first);
    if (unseen.length === 0 || this.#options.signal.aborted) return;
    await this.#options.publish([toLeftMark(unseen, unseen[0]!.outgoing.topic)]);
  }

  #end(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#waiting.clear();
    this.#looked.resolve();
  }
}
