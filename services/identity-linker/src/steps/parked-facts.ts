import type { StreamRecord } from '@playline/stream';
import type { Publish } from './publish.ts';
import { sumBytes, toRecords, toWaiting, type WaitingFact } from './waiting-fact.ts';

/** A fact that waits for an erasure, and the person whose hold it waits for. */
export interface ParkedFact {
  readonly person: string;
  readonly record: StreamRecord;
  /** Keys of all identities that it names. */
  readonly keys: readonly Buffer[];
}

/** Parked facts of one partition for as long as it is ours. Offsets from `firstWaiting` on must not be committed. */
export interface ParkedFacts {
  /**
   * Takes facts in the order of the log; each goes back to the end of its topic with the next round of its person, and to
   * the parked place when its person has gone round for long.
   */
  add(facts: readonly ParkedFact[]): void;
  /** Resolves when every round under way is acknowledged or has failed; never rejects. */
  settled(): Promise<void>;
  /** Lowest offset of a fact that has not gone back yet; null when none waits. */
  firstWaiting(): number | null;
}

/** When facts go round. */
export interface ParkedPace {
  /** From when a person's first fact is parked until its facts go round; then twice as long each time, up to the maximum. */
  readonly roundAfterMinMs: number;
  readonly roundAfterMaxMs: number;
  /** Rounds of a fact before all of its person's that wait go to the parked place. */
  readonly roundsMax: number;
  /** Of one partition. Beyond it those who were parked first go round early: memory has an end. */
  readonly waitingBytesMax: number;
}

/**
 * An erasure takes up to a minute, which is 17 rounds. So only facts of longer erasures go to the parked place; every
 * other is decided sooner than it would be from there. Commits lag by the longest wait, four seconds: the eraser waits
 * for them twice within its minute, and links come that soon after the release. The bytes are some 15,000 facts of
 * usual size.
 */
export const PARKED_PACE: ParkedPace = {
  roundAfterMinMs: 500,
  roundAfterMaxMs: 4_000,
  roundsMax: 17,
  waitingBytesMax: 8 * 1024 * 1024,
};

interface Person {
  waiting: WaitingFact[];
  /** Handed to the producer and not acknowledged. */
  leaving: WaitingFact[];
  roundAfterMs: number;
  timer: NodeJS.Timeout | null;
}

export interface ParkedFactsOptions {
  readonly publish: Publish;
  /** Where the facts of a person go who has gone round for long. */
  readonly parkedTopic: string;
  /** Aborted when the partition is not ours any more: what waits is somebody else's then. */
  readonly signal: AbortSignal;
  /** Told when facts stand in the parked place: more may be committed, and no copy of them comes that would have it done. */
  onLeft(): void;
  /** Default: that of a deployment. */
  readonly pace?: ParkedPace;
}

/**
 * Creates what keeps the facts of one partition that wait for erasures. They wait in this process. In the topic whoever
 * reads on would have to write them again and again. Nothing is lost when the process ends, because their offsets are
 * not committed.
 */
export function createParkedFacts(options: ParkedFactsOptions): ParkedFacts {
  return new Rounds(options);
}

class Rounds implements ParkedFacts {
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

  add(facts: readonly ParkedFact[]): void {
    if (this.#signal.aborted) return;
    for (const { person: name, record, keys } of facts) {
      const person = this.#persons.get(name) ?? this.#open(name);
      const waiting = toWaiting(record, keys);
      person.waiting.push(waiting);
      this.#waitingBytes += waiting.bytes;
    }
    for (const [name, person] of this.#persons) {
      if (this.#waitingBytes <= this.#pace.waitingBytesMax) return;
      if (person.leaving.length === 0) this.#startRound(name, person);
    }
  }

  async settled(): Promise<void> {
    await Promise.all(this.#running);
  }

  firstWaiting(): number | null {
    let first = Number.POSITIVE_INFINITY;
    for (const { waiting, leaving } of this.#persons.values())
      for (const { offset } of [...waiting, ...leaving]) first = Math.min(first, offset);
    return first === Number.POSITIVE_INFINITY ? null : first;
  }

  #open(name: string): Person {
    const { roundAfterMinMs: roundAfterMs } = this.#pace;
    const person: Person = { waiting: [], leaving: [], roundAfterMs, timer: null };
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
    // Nothing waits: everything of this person is decided. Or a fact has not come back although this wait was longer
    // than any before it: then the partition is far behind, and that alone slows the rounds.
    if (person.waiting.length === 0) return void this.#persons.delete(name);
    const round = this.#goRound(name, person).finally(() => this.#running.delete(round));
    this.#running.add(round);
  }

  async #goRound(name: string, person: Person): Promise<void> {
    const { publish, parkedTopic, onLeft } = this.#options;
    person.leaving = person.waiting;
    person.waiting = [];
    this.#waitingBytes -= sumBytes(person.leaving);
    person.roundAfterMs = Math.min(2 * person.roundAfterMs, this.#pace.roundAfterMaxMs);
    const rounds = Math.max(...person.leaving.map((fact) => fact.rounds));
    const isLong = rounds >= this.#pace.roundsMax;
    const { topic } = person.leaving[0]!.outgoing;
    try {
      await publish(isLong ? toRecords(person.leaving, parkedTopic) : toRecords(person.leaving, topic, rounds + 1));
    } catch {
      // Nobody knows whether they stand in the log. Twice does no harm: the second decision says `unchanged`.
      this.#waitingBytes += sumBytes(person.leaving);
      person.waiting = [...person.leaving, ...person.waiting];
    }
    person.leaving = [];
    if (isLong && !this.#signal.aborted) onLeft();
    this.#schedule(name, person);
  }

  #end(): void {
    for (const { timer } of this.#persons.values()) if (timer !== null) clearTimeout(timer);
    this.#persons.clear();
  }
}
