import type { StreamRecord } from '@playline/stream';
import type { Publish } from './publish.ts';
import { sumBytes, toRecords, toWaiting, type WaitingFact } from './waiting-fact.ts';

export interface ParkedFact {
  readonly person: string;
  readonly record: StreamRecord;
  readonly keys: readonly Buffer[];
}

export interface ParkedPace {
  /** Pause before a person's first round. The pause doubles after every round, up to the maximum. */
  readonly roundAfterMinMs: number;
  readonly roundAfterMaxMs: number;
  /** Number of rounds after which a person's facts move to the parked topic. */
  readonly roundsMax: number;
  /** Memory limit per partition. Above the limit, the oldest persons start their rounds early. */
  readonly waitingBytesMax: number;
}

/** 17 rounds take about as long as an erasure: one minute. The memory is enough for about 15,000 facts. */
export const PARKED_PACE: ParkedPace = {
  roundAfterMinMs: 500,
  roundAfterMaxMs: 4_000,
  roundsMax: 17,
  waitingBytesMax: 8 * 1024 * 1024,
};

interface Person {
  waiting: WaitingFact[];
  /** Facts that are published but not yet acknowledged. */
  unacknowledged: WaitingFact[];
  roundAfterMs: number;
  timer: NodeJS.Timeout | null;
}

export interface ParkedFactsOptions {
  readonly publish: Publish;
  readonly parkedTopic: string;
  /** Aborted when this process no longer owns the partition. */
  readonly signal: AbortSignal;
  /** Called after facts have moved to the parked topic, so that the commit can advance. */
  onMoved(): void;
  readonly pace?: ParkedPace;
}

/** The parked facts of one assigned partition. They stay uncommitted, so waiting requires no writes. */
export class ParkedFacts {
  readonly #options: ParkedFactsOptions;
  readonly #signal: AbortSignal;
  readonly #pace: ParkedPace;
  readonly #persons = new Map<string, Person>();
  readonly #running = new Set<Promise<void>>();
  #waitingBytes = 0;

  constructor(options: ParkedFactsOptions) {
    this.#options = options;
    this.#signal = options.signal;
    this.#pace = options.pace ?? PARKED_PACE;
    this.#signal.addEventListener('abort', () => this.#end(), { once: true });
  }

  /**
   * Adds facts in order. A person's next round republishes the facts to the end of their topic or to the parked topic.
   */
  add(facts: readonly ParkedFact[]): void {
    if (this.#signal.aborted) return;
    for (const { person: name, record, keys } of facts) {
      const person = this.#persons.get(name) ?? this.#createPerson(name);
      const waiting = toWaiting(record, keys);
      person.waiting.push(waiting);
      this.#waitingBytes += waiting.bytes;
    }
    for (const [name, person] of this.#persons) {
      if (this.#waitingBytes <= this.#pace.waitingBytesMax) return;
      if (person.unacknowledged.length === 0) this.#startRound(name, person);
    }
  }

  /** Resolves when every running round is acknowledged or has failed. Never rejects. */
  async settled(): Promise<void> {
    await Promise.all(this.#running);
  }

  /** Returns the lowest offset of a waiting fact. The commit must not pass this offset. */
  firstWaiting(): number | null {
    let first = Number.POSITIVE_INFINITY;
    for (const { waiting, unacknowledged } of this.#persons.values())
      for (const { offset } of [...waiting, ...unacknowledged]) first = Math.min(first, offset);
    return first === Number.POSITIVE_INFINITY ? null : first;
  }

  #createPerson(name: string): Person {
    const { roundAfterMinMs: roundAfterMs } = this.#pace;
    const person: Person = { waiting: [], unacknowledged: [], roundAfterMs, timer: null };
    this.#persons.set(name, person);
    this.#schedule(name, person);
    return person;
  }

  #schedule(name: string, person: Person): void {
    if (this.#signal.aborted) return;
    person.timer = setTimeout(() => this.#startRound(name, person), person.roundAfterMs);
  }

  #startRound(name: string, person: Person): void {
    if (person.timer !== null) clearTimeout(person.timer);
    person.timer = null;
    // All facts of this person are decided, or not redelivered yet.
    if (person.waiting.length === 0) return void this.#persons.delete(name);
    const round = this.#runRound(name, person).finally(() => this.#running.delete(round));
    this.#running.add(round);
  }

  async #runRound(name: string, person: Person): Promise<void> {
    const { publish, parkedTopic, onMoved } = this.#options;
    person.unacknowledged = person.waiting;
    person.waiting = [];
    this.#waitingBytes -= sumBytes(person.unacknowledged);
    person.roundAfterMs = Math.min(2 * person.roundAfterMs, this.#pace.roundAfterMaxMs);
    const rounds = person.unacknowledged.reduce((most, fact) => Math.max(most, fact.rounds), 0);
    const isLong = rounds >= this.#pace.roundsMax;
    const { topic } = person.unacknowledged[0]!.outgoing;
    try {
      await publish(
        isLong ? toRecords(person.unacknowledged, parkedTopic) : toRecords(person.unacknowledged, topic, rounds + 1),
      );
    } catch {
      // The facts may be in the log. The decision about a second copy is `unchanged`.
      this.#waitingBytes += sumBytes(person.unacknowledged);
      person.waiting = [...person.unacknowledged, ...person.waiting];
    }
    person.unacknowledged = [];
    if (isLong && !this.#signal.aborted) onMoved();
    this.#schedule(name, person);
  }

  #end(): void {
    for (const { timer } of this.#persons.values()) if (timer !== null) clearTimeout(timer);
    this.#persons.clear();
  }
}
