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

/** Parked facts of one partition during one ownership. Offsets from `firstWaiting` on must not be committed. */
export interface ParkedFacts {
  /**
   * Takes facts in the order of the log. Each goes back to the end of its topic with the next round of its person, or
   * to the parked place after many rounds.
   */
  add(facts: readonly ParkedFact[]): void;
  /** Resolves when every running round is acknowledged or has failed; never rejects. */
  settled(): Promise<void>;
  /** Lowest offset of a fact that has not gone back yet; null when none waits. */
  firstWaiting(): number | null;
}

/** Timing and limits of rounds. */
export interface ParkedPace {
  /** Wait from the parking of a person's first fact to its first round. It doubles each time, up to the maximum. */
  readonly roundAfterMinMs: number;
  readonly roundAfterMaxMs: number;
  /** Rounds of a fact after which all waiting facts of its person go to the parked place. */
  readonly roundsMax: number;
  /** Memory bound for one partition. Beyond it, the persons parked first go round early. */
  readonly waitingBytesMax: number;
}

/**
 * A usual erasure takes up to a minute, which is 17 rounds. So only facts of longer erasures go to the parked place,
 * which would decide the others later. Commits lag by the longest wait, four seconds: the eraser waits for them twice
 * within its minute, and links are decided that soon after the release. The bytes are some 15,000 facts of usual size.
 */
export const PARKED_PACE: ParkedPace = {
  roundAfterMinMs: 500,
  roundAfterMaxMs: 4_000,
  roundsMax: 17,
  waitingBytesMax: 8 * 1024 * 1024,
};

interface Person {
  waiting: WaitingFact[];
  /** Published and not yet acknowledged. */
  leaving: WaitingFact[];
  roundAfterMs: number;
  timer: NodeJS.Timeout | null;
}

export interface ParkedFactsOptions {
  readonly publish: Publish;
  /** Topic of the parked place, for facts that have gone round for long. */
  readonly parkedTopic: string;
  /** Aborted when this process no longer owns the partition; its new owner takes the waiting facts. */
  readonly signal: AbortSignal;
  /** Called when facts are in the parked place, to commit more: no later copy would trigger the commit. */
  onLeft(): void;
  /** Default: the pace of a deployment. */
  readonly pace?: ParkedPace;
}

/**
 * Creates the store of the parked facts of one partition. They wait in this process: in the topic they would have to be
 * written again at every read. Nothing is lost when the process ends, because their offsets are not committed.
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
    // Nothing waits: all facts of this person are decided. Or one has not come back although this wait was the longest
    // so far. Then the partition is far behind, which slows the rounds anyway.
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
    const rounds = person.leaving
      .map((fact) => fact.rounds)
      .reduce((most, each) => Math.max(most, each), Number.NEGATIVE_INFINITY);
    const isLong = rounds >= this.#pace.roundsMax;
    const { topic } = person.leaving[0]!.outgoing;
    try {
      await publish(isLong ? toRecords(person.leaving, parkedTopic) : toRecords(person.leaving, topic, rounds + 1));
    } catch {
      // They may be in the log or not. A second copy does no harm: its decision is `unchanged`.
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
