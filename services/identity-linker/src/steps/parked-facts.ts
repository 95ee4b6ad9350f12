import type { OutgoingRecord, StreamRecord } from '@playline/stream';
import type { Publish } from './publish.ts';

/** A fact that waits for an erasure, and the person whose hold it waits for. */
export interface ParkedFact {
  readonly person: string;
  readonly record: StreamRecord;
}

/** Parked facts of one partition for as long as it is ours. Offsets from `firstWaiting` on must not be committed. */
export interface ParkedFacts {
  /** Takes facts in the order of the log; each goes back to the end of its topic with the next round of its person. */
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
  /** Of one partition. Beyond it those who were parked first go round early: memory has an end. */
  readonly waitingBytesMax: number;
}

/**
 * An erasure takes up to a minute, so a fact goes round some 17 times at most. Commits stay behind by the longest wait, and
 * the eraser, which has a minute in all, waits for them twice; when it lets go, links come within that time too. The bytes
 * are some 15,000 facts of usual size.
 */
export const PARKED_PACE: ParkedPace = {
  roundAfterMinMs: 500,
  roundAfterMaxMs: 4_000,
  waitingBytesMax: 8 * 1024 * 1024,
};
/** Header of a fact that has gone round: its first offset. A newer one may have been written before its copy was. */
const FIRST_OFFSET = 'first-offset';
/** Objects around a fact's bytes. */
const FACT_OVERHEAD_BYTES = 300;

interface Waiting {
  readonly offset: number;
  /** Where it stood when it was parked for the first time: the facts of a person keep this order. */
  readonly firstOffset: number;
  readonly bytes: number;
  readonly outgoing: OutgoingRecord;
}

interface Person {
  waiting: Waiting[];
  /** Handed to the producer and not acknowledged. */
  leaving: Waiting[];
  roundAfterMs: number;
  timer: NodeJS.Timeout | null;
}

/**
 * Creates what holds the facts of a partition that wait for erasures. They wait here and not in the topic, where whoever
 * reads on would have to write them again and again; nothing is lost when the process ends, because their offsets are not
 * committed.
 * @param signal aborted when the partition is not ours any more: what waits is somebody else's then
 */
export function createParkedFacts(publish: Publish, signal: AbortSignal, pace = PARKED_PACE): ParkedFacts {
  return new Rounds(publish, signal, pace);
}

class Rounds implements ParkedFacts {
  readonly #publish: Publish;
  readonly #signal: AbortSignal;
  readonly #pace: ParkedPace;
  readonly #persons = new Map<string, Person>();
  readonly #running = new Set<Promise<void>>();
  #waitingBytes = 0;

  constructor(publish: Publish, signal: AbortSignal, pace: ParkedPace) {
    this.#publish = publish;
    this.#signal = signal;
    this.#pace = pace;
    signal.addEventListener('abort', () => this.#end(), { once: true });
  }

  add(facts: readonly ParkedFact[]): void {
    if (this.#signal.aborted) return;
    for (const { person: name, record } of facts) {
      const person = this.#persons.get(name) ?? this.#open(name);
      const waiting = toWaiting(record);
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
    // Everything of this person is decided. Or it has not come back yet, after a longer wait than any round had: then the
    // partition is that far behind, which paces it too.
    if (person.waiting.length === 0) return void this.#persons.delete(name);
    const round = this.#goRound(name, person).finally(() => this.#running.delete(round));
    this.#running.add(round);
  }

  async #goRound(name: string, person: Person): Promise<void> {
    person.leaving = person.waiting.sort((a, b) => a.firstOffset - b.firstOffset);
    person.waiting = [];
    this.#waitingBytes -= sumBytes(person.leaving);
    person.roundAfterMs = Math.min(2 * person.roundAfterMs, this.#pace.roundAfterMaxMs);
    try {
      await this.#publish(person.leaving.map(({ outgoing }) => outgoing));
    } catch {
      // Nobody knows whether they stand in the log. Twice does no harm: the second decision says `unchanged`.
      this.#waitingBytes += sumBytes(person.leaving);
      person.waiting = [...person.leaving, ...person.waiting];
    }
    person.leaving = [];
    this.#schedule(name, person);
  }

  #end(): void {
    for (const { timer } of this.#persons.values()) if (timer !== null) clearTimeout(timer);
    this.#persons.clear();
  }
}

function sumBytes(facts: readonly Waiting[]): number {
  return facts.reduce((sum, { bytes }) => sum + bytes, 0);
}

/**
 * The fact as it is, for the end of its topic: there it gets a later offset, and its turn. A header tells its first one.
 * Copied, since a record of a fetch keeps the whole answer of the broker in memory.
 */
function toWaiting({ topic, offset, key, value, headers }: StreamRecord): Waiting {
  const kept = Object.entries(headers).filter((header): header is [string, string | Buffer] => header[1] !== undefined);
  const copies = kept.map(([name, content]): [string, Buffer] => [name, Buffer.from(content)]);
  const known = headers[FIRST_OFFSET];
  const firstOffset = known === undefined ? offset : Number(known);
  const outgoing = {
    topic,
    key: key === null ? null : Buffer.from(key),
    value: Buffer.from(value!),
    headers: { ...Object.fromEntries(copies), [FIRST_OFFSET]: String(firstOffset) },
  };
  const headerBytes = copies.reduce((sum, [name, content]) => sum + name.length + content.length, 0);
  return { offset, firstOffset, outgoing, bytes: outgoing.value.length + headerBytes + FACT_OVERHEAD_BYTES };
}
