import { setTimeout as delay } from 'node:timers/promises';
import { attemptsUntilOf, type Batch, type SendCall } from './batch-plan.ts';
import { type BatchBase, ProduceFault, type Verdict } from './broker-faults.ts';
import { type BatchIdentity, encodeBatch, stampBatch } from './record-batch.ts';

export interface EncodedBatch {
  readonly topic: string;
  readonly partition: number;
  /** Stamped with the producer's identity. */
  readonly bytes: Buffer;
  /** No attempt starts after this time, from `performance.now()`. */
  readonly attemptsUntil: number;
}

/** The sender's interface to the cluster. Tests simulate a cluster that loses responses. */
export interface Cluster {
  partitionCount(topic: string): number;
  leaderOf(topic: string, partition: number): number;
  /** Refreshes the metadata of topics. @returns the topics that do not exist */
  refresh(topics: Iterable<string>): Promise<string[]>;
  /** Returns an unused producer id with its first epoch. */
  newProducerId(): Promise<Identity>;
  /** Sends batches to their leader. Never rejects. Returns one verdict per batch, `retry` if there was no response. */
  produce(node: number, batches: readonly EncodedBatch[]): Promise<Verdict[]>;
}

const RETRY_WAIT_MIN_MS = 50;
const RETRY_WAIT_MAX_MS = 1_000;
/** Sequence numbers wrap around as in brokers. */
const SEQUENCE_END = 2 ** 31;
const EPOCH_LAST = 32_766;
/** How many times a batch may require a new producer id before it fails. */
const IDENTITY_CHANGES_MAX = 3;
const ARENA_BYTES_MIN = 256 * 1024;

type Identity = Omit<BatchIdentity, 'sequence'>;

interface Delivery {
  readonly batch: Batch;
  readonly bytes: Buffer;
  readonly attemptsUntil: number;
  /** First sequence number of the batch. Fixed after the first ambiguous attempt. */
  sequence: number;
  /** True if an attempt with this sequence number may be stored. */
  ambiguous: boolean;
  identityChanges: number;
}

export type Settle = (sendCall: SendCall, count: number, fault: Error | null) => void;

/** What must be renewed before the next batch gets a sequence number: nothing, the epoch, or the producer id. */
type Renewal = 'none' | 'epoch' | 'id';

/**
 * Stores each record exactly once, one request per leader at a time. After its first ambiguous attempt, a batch keeps
 * its bytes and sequence number and is the only batch in flight for its partition. If its outcome remains unknown, the
 * producer's epoch ends before another batch gets a sequence number, and after all other batches are unambiguous.
 */
export class Sender {
  readonly #cluster: Cluster;
  readonly #settle: Settle;
  readonly #retryWaitMinMs: number;
  readonly #sequences = new Map<string, number>();
  #identity: Identity | null = null;
  #arena = Buffer.allocUnsafeSlow(ARENA_BYTES_MIN);
  #renewal: Renewal = 'none';

  /** @param settle called with a call and the number of its records that were settled. Each record is counted once */
  constructor(cluster: Cluster, settle: Settle, retryWaitMinMs = RETRY_WAIT_MIN_MS) {
    this.#cluster = cluster;
    this.#settle = settle;
    this.#retryWaitMinMs = retryWaitMinMs;
  }

  /** Resolves when every record is acknowledged, rejected, or abandoned by its caller. */
  async deliver(batches: readonly Batch[]): Promise<void> {
    try {
      await this.#deliver(this.#encode(batches));
    } catch (error) {
      // It is unknown which sequence numbers were sent.
      this.#require('epoch');
      throw error;
    }
  }

  async #deliver(deliveries: Delivery[]): Promise<void> {
    let wait = this.#retryWaitMinMs;
    while (deliveries.length > 0) {
      const progress = await this.#attempt(deliveries);
      if (progress) wait = this.#retryWaitMinMs;
      this.#dropAbandoned(deliveries);
      if (progress || deliveries.length === 0) continue;
      await delay(wait);
      wait = Math.min(RETRY_WAIT_MAX_MS, wait * 2);
      await this.#cluster.refresh(new Set(deliveries.map(({ batch }) => batch.topic)));
      this.#dropAbandoned(deliveries);
    }
  }

  /**
   * Drops batches whose callers timed out and will resend. A batch's bytes are fixed, so one expired record fails all.
   */
  #dropAbandoned(deliveries: Delivery[]): void {
    for (const delivery of deliveries.filter(isAbandoned)) {
      if (delivery.ambiguous) this.#require('epoch');
      this.#settleDelivery(deliveries, delivery, new ProduceFault('DELIVERY_TIMEOUT', 'not acknowledged in time'));
    }
  }

  #require(renewal: Renewal): void {
    if (this.#renewal !== 'id') this.#renewal = renewal;
  }

  #encode(batches: readonly Batch[]): Delivery[] {
    const size = batches.reduce((sum, { bytesMax }) => sum + bytesMax, 0);
    // One buffer is enough, because sends are sequential and the client copies a request before writing it.
    if (this.#arena.length < size) this.#arena = Buffer.allocUnsafeSlow(Math.max(size, this.#arena.length * 2));
    let end = 0;
    return batches.map((batch) => {
      const start = end;
      end = encodeBatch(this.#arena, start, batch.records);
      return createDelivery(batch, this.#arena.subarray(start, end));
    });
  }

  /** Sends to every leader once and removes finished deliveries. @returns true if there was progress */
  async #attempt(deliveries: Delivery[]): Promise<boolean> {
    if (!(await this.#identify(deliveries))) return false;
    const rounds = [...this.#byLeader(deliveries)].map(async ([node, sent]) => {
      const encoded = sent.map(({ batch, bytes, attemptsUntil }): EncodedBatch => {
        return { topic: batch.topic, partition: batch.partition, bytes, attemptsUntil };
      });
      return { sent, verdicts: await this.#cluster.produce(node, encoded) };
    });
    let progress = false;
    for (const { sent, verdicts } of await Promise.all(rounds))
      for (const [i, each] of sent.entries()) progress = this.#apply(deliveries, each, verdicts[i]!) || progress;
    return progress;
  }

  /** Renews the identity if required and no batch depends on the old identity. @returns true if there is an identity */
  async #identify(deliveries: readonly Delivery[]): Promise<boolean> {
    if (this.#renewal !== 'none' && !deliveries.some(({ ambiguous }) => ambiguous)) this.#renew();
    if (this.#identity !== null) return true;
    this.#identity = await this.#cluster.newProducerId().catch(() => null);
    return this.#identity !== null;
  }

  /** Brokers that have seen the new epoch reject older epochs. Sequence numbers restart, as in the Java client. */
  #renew() {
    const isLast = this.#renewal === 'id' || (this.#identity?.producerEpoch ?? 0) >= EPOCH_LAST;
    this.#renewal = 'none';
    this.#sequences.clear();
    if (isLast || this.#identity === null) this.#identity = null;
    else this.#identity = { ...this.#identity, producerEpoch: this.#identity.producerEpoch + 1 };
  }

  /** Stamps the first delivery of every partition that has a leader, and groups these deliveries by leader. */
  #byLeader(deliveries: readonly Delivery[]): Map<number, Delivery[]> {
    const byNode = new Map<number, Delivery[]>();
    const busy = new Set<string>();
    for (const delivery of deliveries) {
      const name = nameOf(delivery.batch);
      const leader = this.#cluster.leaderOf(delivery.batch.topic, delivery.batch.partition);
      if (busy.has(name)) continue;
      busy.add(name);
      if (leader < 0 || (!delivery.ambiguous && this.#renewal !== 'none')) continue;
      if (!delivery.ambiguous) {
        delivery.sequence = this.#sequences.get(name) ?? 0;
        stampBatch(delivery.bytes, { ...this.#identity!, sequence: delivery.sequence });
      }
      byNode.set(leader, [...(byNode.get(leader) ?? []), delivery]);
    }
    return byNode;
  }

  #apply(deliveries: Delivery[], delivery: Delivery, verdict: Verdict): boolean {
    if (verdict.kind === 'retry') {
      delivery.ambiguous ||= verdict.ambiguous;
      return false;
    }
    if (verdict.kind === 'stored') {
      this.#sequences.set(nameOf(delivery.batch), (delivery.sequence + delivery.batch.records.length) % SEQUENCE_END);
      if (verdict.base !== null) reportOffsets(delivery.batch, verdict.base);
      this.#settleDelivery(deliveries, delivery, null);
      return true;
    }
    if (verdict.kind === 'identity') this.#require('id');
    // An earlier attempt may be stored, and halves or a batch with a new identity would not be recognized as
    // duplicates.
    if (delivery.ambiguous) this.#require('epoch');
    else if (verdict.kind === 'tooLarge' && delivery.batch.records.length > 1) {
      const [first, second] = splitDelivery(delivery);
      deliveries.splice(deliveries.indexOf(delivery), 1, first!, second!);
      return true;
    } else if (verdict.kind === 'identity' && delivery.identityChanges++ < IDENTITY_CHANGES_MAX) return false;
    const message = `The leader of ${nameOf(delivery.batch)} rejected the records: ${verdict.code}`;
    this.#settleDelivery(deliveries, delivery, new ProduceFault(verdict.code, message));
    return true;
  }

  #settleDelivery(deliveries: Delivery[], delivery: Delivery, fault: Error | null) {
    deliveries.splice(deliveries.indexOf(delivery), 1);
    for (const { sendCall, count } of delivery.batch.owners) this.#settle(sendCall, count, fault);
  }
}

const nameOf = ({ topic, partition }: Batch) => `${topic}/${partition}`;

/** Reports the offsets of single records. A batch is stored from its base offset on, in the order of its owners. */
function reportOffsets({ partition, owners }: Batch, base: BatchBase): void {
  let { offset } = base;
  for (const { sendCall, count } of owners) {
    sendCall.onStored?.({ partition, offset, loggedAtMs: base.loggedAtMs });
    offset += count;
  }
}

function createDelivery(batch: Batch, bytes: Buffer): Delivery {
  return { batch, bytes, attemptsUntil: attemptsUntilOf(batch), sequence: 0, ambiguous: false, identityChanges: 0 };
}

/** Returns true if no attempt may start, or if all calls have already failed. */
function isAbandoned({ batch, attemptsUntil }: Delivery): boolean {
  return attemptsUntil <= performance.now() || batch.owners.every(({ sendCall }) => sendCall.done === null);
}

/** Splits a batch that is too large for its topic into halves, which are sent one after the other. */
function splitDelivery({ batch }: Delivery): Delivery[] {
  const middle = batch.records.length >> 1;
  const halves: Batch[] = [
    { ...batch, records: batch.records.slice(0, middle), owners: [] },
    { ...batch, records: batch.records.slice(middle), owners: [] },
  ];
  let index = 0;
  for (const { sendCall, count } of batch.owners) {
    const first = Math.max(0, Math.min(count, middle - index));
    if (first > 0) halves[0]!.owners.push({ sendCall, count: first });
    if (count > first) halves[1]!.owners.push({ sendCall, count: count - first });
    index += count;
  }
  return halves.map((half) => {
    const bytes = Buffer.allocUnsafe(batch.bytesMax);
    return createDelivery(half, bytes.subarray(0, encodeBatch(bytes, 0, half.records)));
  });
}
