import { TOPICS } from '@playline/contracts';
import type { ErasureGuards } from '@playline/people';
import type { StreamRecord } from '@playline/stream';
import type { Publish } from './publish.ts';
import { toLeftMark, toRecords, toWaiting, type WaitingFact } from './waiting-fact.ts';

export interface ParkedTopicFact {
  readonly record: StreamRecord;
  readonly environmentId: string;
  /** Hexadecimal. */
  readonly messageId: string;
  /** Epoch milliseconds. */
  readonly receivedAt: number;
  /** Hexadecimal. */
  readonly keys: readonly string[];
}

export interface ParkedTopicPace {
  readonly checkEveryMs: number;
  /** Age from which facts are rewritten, before retention may delete them. */
  readonly renewAfterMs: number;
  /** Memory per partition above which the oldest facts move to the end of the log. */
  readonly waitingBytesMax: number;
  readonly turnEveryMs: number;
}

/** A check costs Redis 35 µs per held person. Checking a hundred thousand facts takes less than ten minutes. */
export const PARKED_TOPIC_PACE: ParkedTopicPace = {
  checkEveryMs: 1_000,
  renewAfterMs: TOPICS.parkedLinks.retentionMs / 3,
  waitingBytesMax: 8 * 1024 * 1024,
  turnEveryMs: 30_000,
};

export interface ParkedTopicOptions {
  readonly guards: Pick<ErasureGuards, 'heldFrom'>;
  readonly publish: Publish;
  readonly linkTopic: string;
  /** Aborted when this process no longer owns the partition. */
  readonly signal: AbortSignal;
  /** Called when facts have left, so that the commit can advance. */
  onLeft(): void;
  /** Called for every failed check; checks continue. */
  onFault(fault: unknown): void;
  readonly pace?: ParkedTopicPace;
}

interface WaitingParkedFact extends WaitingFact, HeldFact {
  /** Epoch milliseconds of the fact's last copy in the log. */
  writtenAtMs: number;
}

const KEY_BYTES = 48;

/** Facts of an assigned partition. An offset is committed only when a copy of its fact is acknowledged elsewhere. */
export class ParkedTopic {
  readonly #options: ParkedTopicOptions;
  readonly #pace: ParkedTopicPace;
  /** Facts by name, in the order of the log. */
  readonly #waiting = new Map<string, WaitingParkedFact>();
  #waitingBytes = 0;
  #turnedAtMs = performance.now();
  #timer: NodeJS.Timeout | null = null;
  #isChecking = false;
  #checked = Promise.withResolvers<void>();

  constructor(options: ParkedTopicOptions) {
    this.#options = options;
    this.#pace = options.pace ?? PARKED_TOPIC_PACE;
    options.signal.addEventListener('abort', () => this.#end(), { once: true });
  }

  /** Adds facts in order; resolves when memory permits more. */
  async add(facts: readonly ParkedTopicFact[]): Promise<void> {
    const { signal } = this.#options;
    if (signal.aborted) return;
    for (const fact of facts) this.#put(fact);
    this.#schedule();
    while (this.#waitingBytes > this.#pace.waitingBytesMax && !signal.aborted) await this.#checked.promise;
  }

  /** Lowest offset of a fact without a copy elsewhere, which must not be committed. */
  firstWaiting(): number | null {
    const [first] = this.#waiting.values();
    return first?.offset ?? null;
  }

  count(): number {
    return this.#waiting.size;
  }

  /** Stores a fact. Of two copies, the later copy is kept. */
  #put({ record, environmentId, messageId, receivedAt, keys }: ParkedTopicFact): void {
    const fact = toWaiting(
      record,
      keys.map((key) => Buffer.from(key, 'hex')),
    );
    const name = `${environmentId}/${messageId}/${fact.firstOffset}`;
    const known = this.#waiting.get(name);
    if (known !== undefined) this.#remove([[name, known]]);
    const bytes = fact.bytes + keys.length * KEY_BYTES;
    const waiting = { ...fact, bytes, environmentId, receivedAt, keys, heldBy: null, writtenAtMs: record.timestampMs };
    this.#waiting.set(name, waiting);
    this.#waitingBytes += bytes;
  }

  #remove(facts: readonly [name: string, fact: WaitingParkedFact][]): void {
    for (const [name, fact] of facts) {
      // A new copy may have replaced the fact.
      if (this.#waiting.get(name) !== fact) continue;
      this.#waiting.delete(name);
      this.#waitingBytes -= fact.bytes;
    }
  }

  #schedule(): void {
    if (this.#timer !== null || this.#isChecking || this.#options.signal.aborted || this.#waiting.size === 0) return;
    this.#timer = setTimeout(() => void this.#check(), this.#pace.checkEveryMs);
  }

  async #check(): Promise<void> {
    const { guards, linkTopic, onFault } = this.#options;
    this.#timer = null;
    this.#isChecking = true;
    try {
      const free = await findFree([...this.#waiting.values()], guards);
      const freed = new Set(free);
      await this.#move((fact) => freed.has(fact), linkTopic);
      await this.#markLeft(free);
    } catch (fault) {
      onFault(fault);
    }
    // Runs even while Redis is unavailable, because of retention.
    await this.#rewrite().catch(onFault);
    this.#isChecking = false;
    this.#checked.resolve();
    this.#checked = Promise.withResolvers();
    this.#schedule();
  }

  /**
   * Rewrites facts at the end of the log: all facts before retention deletes any, so that a person's facts stay
   * together, or the oldest facts, which leave this process, when too many wait.
   */
  async #rewrite(): Promise<void> {
    const { renewAfterMs, waitingBytesMax, turnEveryMs } = this.#pace;
    const facts = [...this.#waiting.values()];
    const [first] = facts;
    if (first === undefined || this.#options.signal.aborted) return;
    const { topic } = first.outgoing;
    const checkedAtMs = Date.now();
    if (facts.some(({ writtenAtMs }) => writtenAtMs + renewAfterMs < checkedAtMs)) {
      await this.#options.publish(toRecords(facts, topic));
      for (const fact of facts) fact.writtenAtMs = checkedAtMs;
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
    // After a fault the facts may be in the log. The decision about a second copy is `unchanged`.
    await publish(toRecords(facts, topic));
    this.#remove(due);
    if (!signal.aborted) onLeft();
  }

  /** Marks facts that left before an older fact, which the committed offset does not show. Written after the facts. */
  async #markLeft(facts: readonly WaitingParkedFact[]): Promise<void> {
    const first = this.firstWaiting();
    const unseen = facts.filter(({ offset }) => first !== null && offset > first);
    if (unseen.length === 0 || this.#options.signal.aborted) return;
    await this.#options.publish([toLeftMark(unseen, unseen[0]!.outgoing.topic)]);
  }

  #end(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#waiting.clear();
    this.#checked.resolve();
  }
}

/** A fact that waits while one of its persons is held. */
interface HeldFact {
  readonly environmentId: string;
  /** Epoch milliseconds. */
  readonly receivedAt: number;
  /** Hexadecimal. */
  readonly keys: readonly string[];
  /** The key whose person was held at the last check; null before the first check. */
  heldBy: string | null;
}

/** Per checked key, the time after which its links wait; null without a hold. */
type HeldFrom = Map<string, number | null>;

/**
 * Finds the facts that no hold delays. Of a held fact, only the key whose person was held is checked first.
 * @throws a fault of the guards
 */
async function findFree<F extends HeldFact>(
  facts: readonly F[],
  guards: Pick<ErasureGuards, 'heldFrom'>,
): Promise<F[]> {
  const free: F[] = [];
  for (const [environmentId, group] of Map.groupBy(facts, (fact) => fact.environmentId)) {
    const known: HeldFrom = new Map();
    const check = async (keys: Iterable<string>) => {
      const unknown = [...new Set(keys)].filter((key) => !known.has(key));
      if (unknown.length === 0) return;
      const times = await guards.heldFrom(
        environmentId,
        unknown.map((key) => Buffer.from(key, 'hex')),
      );
      for (const [at, key] of unknown.entries()) known.set(key, times[at]!);
    };
    await check(group.flatMap(({ heldBy, keys }) => heldBy ?? keys));
    const freed = group.filter((fact) => findHolder(fact, known) === null);
    await check(freed.flatMap(({ keys }) => keys));
    for (const fact of group) {
      fact.heldBy = findHolder(fact, known);
      if (fact.heldBy === null) free.push(fact);
    }
  }
  return free;
}

/** The first checked key whose person the fact waits for, or null. */
function findHolder({ keys, receivedAt }: HeldFact, known: HeldFrom): string | null {
  return keys.find((key) => receivedAt > (known.get(key) ?? Number.POSITIVE_INFINITY)) ?? null;
}
