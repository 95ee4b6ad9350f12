import { TOPICS } from '@playline/contracts';
import type { ErasureGuards } from '@playline/people';
import type { StreamRecord } from '@playline/stream';
import type { Publish } from './publish.ts';
import { toDepartureRecord, toRecords, toWaiting, type WaitingFact } from './waiting-fact.ts';

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
  readonly checkIntervalMs: number;
  /** Age at which facts are rewritten, so that retention does not delete them. */
  readonly renewAfterMs: number;
  /** Memory limit per partition. Above the limit, the oldest facts move to the end of the log. */
  readonly waitingBytesMax: number;
  readonly rotationIntervalMs: number;
}

/** A check costs Redis 35 µs per held person. A hundred thousand facts are checked in less than ten minutes. */
export const PARKED_TOPIC_PACE: ParkedTopicPace = {
  checkIntervalMs: 1_000,
  renewAfterMs: TOPICS.parkedLinks.retentionMs / 3,
  waitingBytesMax: 8 * 1024 * 1024,
  rotationIntervalMs: 30_000,
};

export interface ParkedTopicOptions {
  readonly guards: Pick<ErasureGuards, 'heldFrom'>;
  readonly publish: Publish;
  readonly linkTopic: string;
  /** Aborted when this process no longer owns the partition. */
  readonly signal: AbortSignal;
  /** Called after facts have left the parked topic, so that the commit can advance. */
  onMoved(): void;
  /** Called after every failed check. Checks continue. */
  onFault(fault: unknown): void;
  readonly pace?: ParkedTopicPace;
}

interface WaitingParkedFact extends WaitingFact, HeldFact {
  /** When the fact's latest copy was logged, in epoch milliseconds. */
  writtenAtMs: number;
}

const KEY_BYTES = 48;

/** The parked facts of one assigned partition. An offset is committed after a copy of its fact is acknowledged. */
export class ParkedTopic {
  readonly #options: ParkedTopicOptions;
  readonly #pace: ParkedTopicPace;
  /** Facts by name, in log order. */
  readonly #waiting = new Map<string, WaitingParkedFact>();
  #waitingBytes = 0;
  #rotatedAtMs = performance.now();
  #timer: NodeJS.Timeout | null = null;
  #isChecking = false;
  #checked = Promise.withResolvers<void>();

  constructor(options: ParkedTopicOptions) {
    this.#options = options;
    this.#pace = options.pace ?? PARKED_TOPIC_PACE;
    options.signal.addEventListener('abort', () => this.#end(), { once: true });
  }

  /** Adds facts in order. Resolves when there is memory for more facts. */
  async add(facts: readonly ParkedTopicFact[]): Promise<void> {
    const { signal } = this.#options;
    if (signal.aborted) return;
    for (const fact of facts) this.#put(fact);
    this.#schedule();
    while (this.#waitingBytes > this.#pace.waitingBytesMax && !signal.aborted) await this.#checked.promise;
  }

  /** Returns the lowest offset of a fact without an acknowledged copy. The commit must not pass this offset. */
  firstWaiting(): number | null {
    const [first] = this.#waiting.values();
    return first?.offset ?? null;
  }

  count(): number {
    return this.#waiting.size;
  }

  /** Stores a fact. A later copy replaces an earlier copy. */
  #put({ record, environmentId, messageId, receivedAt, keys }: ParkedTopicFact): void {
    const fact = toWaiting(
      record,
      keys.map((key) => Buffer.from(key, 'hex')),
    );
    const name = `${environmentId}/${messageId}/${fact.firstOffset}`;
    const previous = this.#waiting.get(name);
    if (previous !== undefined) this.#remove([[name, previous]]);
    const bytes = fact.bytes + keys.length * KEY_BYTES;
    const waiting = { ...fact, bytes, environmentId, receivedAt, keys, heldBy: null, writtenAtMs: record.timestampMs };
    this.#waiting.set(name, waiting);
    this.#waitingBytes += bytes;
  }

  #remove(facts: readonly [name: string, fact: WaitingParkedFact][]): void {
    for (const [name, fact] of facts) {
      // A newer copy may have replaced this fact.
      if (this.#waiting.get(name) !== fact) continue;
      this.#waiting.delete(name);
      this.#waitingBytes -= fact.bytes;
    }
  }

  #schedule(): void {
    if (this.#timer !== null || this.#isChecking || this.#options.signal.aborted || this.#waiting.size === 0) return;
    this.#timer = setTimeout(() => void this.#check(), this.#pace.checkIntervalMs);
  }

  async #check(): Promise<void> {
    const { guards, linkTopic, onFault } = this.#options;
    this.#timer = null;
    this.#isChecking = true;
    try {
      const released = await findReleased([...this.#waiting.values()], guards);
      const releasedFacts = new Set(released);
      await this.#move((fact) => releasedFacts.has(fact), linkTopic);
      await this.#recordDepartures(released);
    } catch (fault) {
      onFault(fault);
    }
    // Rewrites even while Redis is unavailable, because retention continues.
    await this.#rewrite().catch(onFault);
    this.#isChecking = false;
    this.#checked.resolve();
    this.#checked = Promise.withResolvers();
    this.#schedule();
  }

  /**
   * Rewrites facts to the end of the log. Before retention deletes a fact, all facts are rewritten, so that a person's
   * facts stay together. Above the memory limit, the oldest facts are rewritten and removed from memory.
   */
  async #rewrite(): Promise<void> {
    const { renewAfterMs, waitingBytesMax, rotationIntervalMs } = this.#pace;
    const facts = [...this.#waiting.values()];
    const [first] = facts;
    if (first === undefined || this.#options.signal.aborted) return;
    const { topic } = first.outgoing;
    const checkedAtMs = Date.now();
    if (facts.some(({ writtenAtMs }) => writtenAtMs + renewAfterMs < checkedAtMs)) {
      await this.#options.publish(toRecords(facts, topic));
      for (const fact of facts) fact.writtenAtMs = checkedAtMs;
    }
    if (this.#waitingBytes <= waitingBytesMax || performance.now() - this.#rotatedAtMs < rotationIntervalMs) return;
    this.#rotatedAtMs = performance.now();
    let surplus = this.#waitingBytes - waitingBytesMax / 2;
    const isSurplus = (fact: WaitingParkedFact) => {
      surplus -= fact.bytes;
      return surplus + fact.bytes > 0;
    };
    await this.#move(isSurplus, topic);
  }

  async #move(isDue: (fact: WaitingParkedFact) => boolean, topic: string): Promise<void> {
    const { publish, signal, onMoved } = this.#options;
    const due = [...this.#waiting].filter(([, fact]) => isDue(fact));
    if (due.length === 0 || signal.aborted) return;
    const facts = due.map(([, fact]) => fact);
    // After a fault, the facts may already be in the log. The decision about a second copy is `unchanged`.
    await publish(toRecords(facts, topic));
    this.#remove(due);
    if (!signal.aborted) onMoved();
  }

  /** Records the facts that were moved out before an older fact, because the committed offset does not cover them. */
  async #recordDepartures(facts: readonly WaitingParkedFact[]): Promise<void> {
    const first = this.firstWaiting();
    const uncovered = facts.filter(({ offset }) => first !== null && offset > first);
    if (uncovered.length === 0 || this.#options.signal.aborted) return;
    await this.#options.publish([toDepartureRecord(uncovered, uncovered[0]!.outgoing.topic)]);
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

/** For each checked key, the time after which its links wait; null if the key is not held. */
type HeldFrom = Map<string, number | null>;

/**
 * Finds the facts that no hold delays. For a held fact, the key that was held at the last check is checked first.
 * @throws a fault of the guards
 */
async function findReleased<F extends HeldFact>(
  facts: readonly F[],
  guards: Pick<ErasureGuards, 'heldFrom'>,
): Promise<F[]> {
  const released: F[] = [];
  for (const [environmentId, group] of Map.groupBy(facts, (fact) => fact.environmentId)) {
    const checkedKeys: HeldFrom = new Map();
    const check = async (keys: Iterable<string>) => {
      const unchecked = [...new Set(keys)].filter((key) => !checkedKeys.has(key));
      if (unchecked.length === 0) return;
      const times = await guards.heldFrom(
        environmentId,
        unchecked.map((key) => Buffer.from(key, 'hex')),
      );
      for (const [at, key] of unchecked.entries()) checkedKeys.set(key, times[at]!);
    };
    await check(group.flatMap(({ heldBy, keys }) => heldBy ?? keys));
    const releasable = group.filter((fact) => findHeldKey(fact, checkedKeys) === null);
    await check(releasable.flatMap(({ keys }) => keys));
    for (const fact of group) {
      fact.heldBy = findHeldKey(fact, checkedKeys);
      if (fact.heldBy === null) released.push(fact);
    }
  }
  return released;
}

/** Returns the first checked key whose hold delays the fact, or null. */
function findHeldKey({ keys, receivedAt }: HeldFact, checkedKeys: HeldFrom): string | null {
  return keys.find((key) => receivedAt > (checkedKeys.get(key) ?? Number.POSITIVE_INFINITY)) ?? null;
}
