import { TOPICS } from '@playline/contracts';
import type { ErasureGuards } from '@playline/people';
import type { StreamRecord } from '@playline/stream';
import type { Publish } from './publish.ts';
import { toLeftMark, toRecords, toWaiting, type WaitingFact } from './waiting-fact.ts';

/** A fact of the parked place, and the identities that it touches. */
export interface ParkedTopicFact {
  readonly record: StreamRecord;
  readonly environmentId: string;
  /** Hexadecimal. */
  readonly messageId: string;
  /** Epoch milliseconds. */
  readonly receivedAt: number;
  /** Identity keys of all its steps, hexadecimal. */
  readonly keys: readonly string[];
}

/** Facts of one partition of the parked place. Offsets from `firstWaiting` on must not be committed. */
export interface ParkedTopic {
  /** Adds facts in the order of the log; resolves when there is room for more. */
  add(facts: readonly ParkedTopicFact[]): Promise<void>;
  /** Lowest offset of a fact that has no copy elsewhere yet; null when none waits. */
  firstWaiting(): number | null;
  /** Number of waiting facts. */
  count(): number;
}

/** Timing and limits of the parked place. */
export interface ParkedTopicPace {
  readonly checkEveryMs: number;
  /** Facts older than this in the log are rewritten at its end, before retention may delete them. */
  readonly renewAfterMs: number;
  /** Memory bound for one partition. Beyond it, the longest waiting facts go to the end of the log to make room. */
  readonly waitingBytesMax: number;
  /** Least time between two such moves, so that with many facts each is checked in its turn. */
  readonly turnEveryMs: number;
}

/**
 * A check costs Redis some 35 µs for each held person, in calls of up to a hundred. The bytes are some 10,000 facts of
 * usual size, and half of them move at once. So a hundred thousand facts all get their turn within some ten minutes, at
 * 140 kB/s of writing.
 */
export const PARKED_TOPIC_PACE: ParkedTopicPace = {
  checkEveryMs: 1_000,
  renewAfterMs: TOPICS.parkedLinks.retentionMs / 3,
  waitingBytesMax: 8 * 1024 * 1024,
  turnEveryMs: 30_000,
};

export interface ParkedTopicOptions {
  readonly guards: Pick<ErasureGuards, 'heldFrom'>;
  readonly publish: Publish;
  /** Topic for facts that no hold delays any more. */
  readonly linkTopic: string;
  /** Aborted when this process no longer owns the partition; its new owner takes the waiting facts. */
  readonly signal: AbortSignal;
  /** Called when facts have been written elsewhere, so that more can be committed. */
  onLeft(): void;
  /** Called for every failed check; the next one follows all the same. */
  onFault(fault: unknown): void;
  /** Default: the pace of a deployment. */
  readonly pace?: ParkedTopicPace;
}

/**
 * Creates the store of the facts of one partition that wait for long erasures. An offset is committed only when its
 * fact is acknowledged elsewhere: on the link topic once no hold delays it, else at the end of this log.
 */
export function createParkedTopic(options: ParkedTopicOptions): ParkedTopic {
  return new ParkedTopicFacts(options);
}

interface WaitingParkedFact extends WaitingFact, HeldFact {
  /** Epoch milliseconds: when it, or its copy that has not come back yet, was written to the log. */
  writtenAtMs: number;
}

/** Memory of a key as text. */
const KEY_BYTES = 48;

class ParkedTopicFacts implements ParkedTopic {
  readonly #options: ParkedTopicOptions;
  readonly #pace: ParkedTopicPace;
  /** Facts by name, in the order of the log. */
  readonly #waiting = new Map<string, WaitingParkedFact>();
  #waitingBytes = 0;
  #turnedAtMs = performance.now();
  #timer: NodeJS.Timeout | null = null;
  #isLooking = false;
  #looked = Promise.withResolvers<void>();

  constructor(options: ParkedTopicOptions) {
    this.#options = options;
    this.#pace = options.pace ?? PARKED_TOPIC_PACE;
    options.signal.addEventListener('abort', () => this.#end(), { once: true });
  }

  async add(facts: readonly ParkedTopicFact[]): Promise<void> {
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

  /** Adds a fact. Of two copies the later one is kept: it is in the log too, and not committed either. */
  #put({ record, environmentId, messageId, receivedAt, keys }: ParkedTopicFact): void {
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

  #remove(facts: readonly [name: string, fact: WaitingParkedFact][]): void {
    for (const [name, fact] of facts) {
      // The new copy may have come back already. It replaced this one here, and is not committed either.
      if (this.#waiting.get(name) !== fact) continue;
      this.#waiting.delete(name);
      this.#waitingBytes -= fact.bytes;
    }
  }

  #schedule(): void {
    if (this.#timer !== null || this.#isLooking || this.#options.signal.aborted || this.#waiting.size === 0) return;
    this.#timer = setTimeout(() => void this.#look(), this.#pace.checkEveryMs);
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
    // Also while Redis cannot be asked, because retention goes on.
    await this.#writeAnew().catch(onFault);
    this.#isLooking = false;
    this.#looked.resolve();
    this.#looked = Promise.withResolvers();
    this.#schedule();
  }

  /**
   * Rewrites facts at the end of the log, for one of two reasons. If retention may soon delete a fact, all facts are
   * rewritten, so that those of a person stay together, and they are kept here until they come back. If too many wait,
   * the longest waiting ones are rewritten and leave this process.
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
    const isSurplus = (fact: WaitingParkedFact) => {
      surplus -= fact.bytes;
      return surplus + fact.bytes > 0;
    };
    await this.#move(isSurplus, topic);
  }

  async #move(isDue: (fact: WaitingParkedFact) => boolean, topic: string): Promise<void> {
    const { publish, signal, onLeft } = this.#options;
    const due = [...this.#waiting].filter(([, fact]) => isDue(fact));
    if (due.length === 0 || signal.aborted) return;
    const facts = due.map(([, fact]) => fact);
    // After a fault they may be in the log or not. A second copy does no harm: its decision is `unchanged`.
    await publish(toRecords(facts, topic));
    this.#remove(due);
    if (!signal.aborted) onLeft();
  }

  /**
   * Writes to the parked place which facts have left it. This is needed while an older fact still waits, because the
   * committed offset does not show it then. The mark is written once, and after the facts, or it might be false. Facts
   * without a mark only count as waiting until the commit has passed them.
   */
  async #markLeft(facts: readonly WaitingParkedFact[]): Promise<void> {
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

/** A fact that waits while an erasure holds somebody whom it touches. */
interface HeldFact {
  readonly environmentId: string;
  /** Epoch milliseconds. */
  readonly receivedAt: number;
  /** Identity keys of all its steps, hexadecimal. */
  readonly keys: readonly string[];
  /** The key whose person was held at the last check; null before the first check. */
  heldBy: string | null;
}

/** For each checked key, the time after which links of the identity wait; null when there is no hold on it. */
type Answers = Map<string, number | null>;

/**
 * Finds the facts that no hold delays any more, by the rule that the graph uses. For a fact that was held, only the key
 * whose person was held is checked; usually all facts of a person share it. All keys are checked when the fact is new,
 * or when that key is free.
 * @throws a fault of the guards
 */
async function findFree<F extends HeldFact>(
  facts: readonly F[],
  guards: Pick<ErasureGuards, 'heldFrom'>,
): Promise<F[]> {
  const free: F[] = [];
  for (const [environmentId, own] of Map.groupBy(facts, (fact) => fact.environmentId)) {
    const answers: Answers = new Map();
    const ask = async (keys: Iterable<string>) => {
      const asked = [...new Set(keys)].filter((key) => !answers.has(key));
      if (asked.length === 0) return;
      const told = await guards.heldFrom(
        environmentId,
        asked.map((key) => Buffer.from(key, 'hex')),
      );
      for (const [at, key] of asked.entries()) answers.set(key, told[at]!);
    };
    await ask(own.flatMap(({ heldBy, keys }) => heldBy ?? keys));
    const letGo = own.filter((fact) => findHolder(fact, answers) === null);
    await ask(letGo.flatMap(({ keys }) => keys));
    for (const fact of own) {
      fact.heldBy = findHolder(fact, answers);
      if (fact.heldBy === null) free.push(fact);
    }
  }
  return free;
}

/** The first checked key whose person the fact waits for; null when it waits for none. */
function findHolder({ keys, receivedAt }: HeldFact, answers: Answers): string | null {
  return keys.find((key) => receivedAt > (answers.get(key) ?? Number.POSITIVE_INFINITY)) ?? null;
}
