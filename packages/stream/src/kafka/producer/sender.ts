import { setTimeout as delay } from 'node:timers/promises';
import { attemptsUntilOf, type Batch, type Shipment } from './batch-plan.ts';
import { type BatchBase, ProduceFault, type Verdict } from './broker-faults.ts';
import { encodeBatch, stampBatch } from './record-batch.ts';

/** Encoded records of one partition, ready to send. */
export interface EncodedBatch {
  readonly topic: string;
  readonly partition: number;
  /** Stamped with the producer's identity. */
  readonly bytes: Buffer;
  /** Nothing is sent after this time by `performance.now()`. */
  readonly attemptsUntil: number;
}

/** What the sender needs of a cluster. Small, so that tests can simulate a cluster that loses answers. */
export interface Wire {
  /** Number of partitions, or 0 when the topic is not known yet. */
  partitionCount(topic: string): number;
  /** Id of the leader of the partition, or -1. */
  leaderOf(topic: string, partition: number): number;
  /** Refreshes the metadata of topics. @returns the topics that do not exist */
  refresh(topics: Iterable<string>): Promise<string[]>;
  /** A producer id never used before, with its first epoch. */
  newProducerId(): Promise<{ producerId: bigint; producerEpoch: number }>;
  /**
   * Sends batches to their leader with acks=all. Returns one verdict for each, in order. Never rejects: without an
   * answer the verdict is `again`, ambiguous when bytes may have been sent.
   */
  produce(node: number, batches: readonly EncodedBatch[]): Promise<Verdict[]>;
}

/** Waits between attempts of one send. Short enough to continue within a second after a broker returns. */
const RETRY_WAIT_MIN_MS = 50;
const RETRY_WAIT_MAX_MS = 1_000;
/** Sequence numbers wrap around here, as in brokers. */
const SEQUENCE_END = 2 ** 31;
/** The last epoch of a producer id. After it a new id is needed. */
const EPOCH_LAST = 32_766;
/** How often a batch may get a new producer id before it fails. More would mean a broker that never accepts it. */
const IDENTITY_CHANGES_MAX = 3;
const ARENA_BYTES_MIN = 256 * 1024;

interface Identity {
  producerId: bigint;
  producerEpoch: number;
}

/** A batch that is being sent. */
interface Flight {
  readonly batch: Batch;
  readonly bytes: Buffer;
  readonly attemptsUntil: number;
  /** Its first sequence number after stamping. It stays the same from the first ambiguous attempt on. */
  sequence: number;
  /** An attempt with this sequence number was sent, but neither acknowledged nor refused for good: it may be stored. */
  ambiguous: boolean;
  identityChanges: number;
}

export type Settle = (shipment: Shipment, count: number, fault: Error | null) => void;

/**
 * What is needed before another batch gets a sequence number: nothing, the next epoch of this producer id, or another
 * id because a broker does not accept this one.
 */
type Renewal = 'none' | 'epoch' | 'id';

/**
 * Stores each record exactly once in the log, one send after the other.
 *
 * How a record is stored once: (1) A batch keeps its bytes and its sequence number from the first attempt that may have
 * been stored, so the broker recognises copies. (2) Only one batch per partition is in flight, so no later one can
 * overtake it. (3) The outcome of a sequence number may be unknown: its batch was given up, or refused after an attempt
 * that may have been stored. Then no other batch gets a number before the producer's epoch has ended. An epoch ends
 * only when none of its batches is ambiguous, because a copy is recognised only in the epoch of the attempt that it
 * repeats.
 */
export class Sender {
  readonly #wire: Wire;
  readonly #settle: Settle;
  readonly #retryWaitMinMs: number;
  readonly #sequences = new Map<string, number>();
  #identity: Identity | null = null;
  #arena = Buffer.allocUnsafeSlow(ARENA_BYTES_MIN);
  #renewal: Renewal = 'none';

  /**
   * @param settle called once for every record, with a count of records of one shipment
   * @param retryWaitMinMs first wait between attempts
   */
  constructor(wire: Wire, settle: Settle, retryWaitMinMs = RETRY_WAIT_MIN_MS) {
    this.#wire = wire;
    this.#settle = settle;
    this.#retryWaitMinMs = retryWaitMinMs;
  }

  /** Resolves when every record is acknowledged, refused, or given up by its caller. */
  async deliver(batches: readonly Batch[]): Promise<void> {
    try {
      await this.#deliver(this.#encode(batches));
    } catch (error) {
      // It is unknown here what was sent under which sequence number.
      this.#require('epoch');
      throw error;
    }
  }

  async #deliver(flights: Flight[]): Promise<void> {
    let wait = this.#retryWaitMinMs;
    while (flights.length > 0) {
      const progress = await this.#attempt(flights);
      if (progress) wait = this.#retryWaitMinMs;
      this.#dropGivenUp(flights);
      if (progress || flights.length === 0) continue;
      await delay(wait);
      wait = Math.min(RETRY_WAIT_MAX_MS, wait * 2);
      await this.#wire.refresh(new Set(flights.map(({ batch }) => batch.topic)));
      this.#dropGivenUp(flights);
    }
  }

  /**
   * Drops batches whose callers have given up. They send the records again, so further attempts would only make copies.
   * The bytes of a batch are fixed, so one record that must not be sent any more fails those beside it.
   */
  #dropGivenUp(flights: Flight[]): void {
    for (const flight of flights.filter(isGivenUp)) {
      if (flight.ambiguous) this.#require('epoch');
      this.#land(flights, flight, new ProduceFault('DELIVERY_TIMEOUT', 'not acknowledged while attempts were allowed'));
    }
  }

  #require(renewal: Renewal): void {
    if (this.#renewal !== 'id') this.#renewal = renewal;
  }

  #encode(batches: readonly Batch[]): Flight[] {
    const room = batches.reduce((sum, { bytesMax }) => sum + bytesMax, 0);
    // One buffer is enough: there is one send at a time, and the client copies a request before it writes it.
    if (this.#arena.length < room) this.#arena = Buffer.allocUnsafeSlow(Math.max(room, this.#arena.length * 2));
    let at = 0;
    return batches.map((batch) => {
      const end = encodeBatch(this.#arena, at, batch.records);
      const bytes = this.#arena.subarray(at, end);
      at = end;
      return createFlight(batch, bytes);
    });
  }

  /**
   * Sends to every leader concerned, once; removes finished flights from the list. @returns whether there was progress
   */
  async #attempt(flights: Flight[]): Promise<boolean> {
    if (!(await this.#identify(flights))) return false;
    const rounds = [...this.#byLeader(flights)].map(async ([node, sent]) => {
      const encoded = sent.map(({ batch, bytes, attemptsUntil }): EncodedBatch => {
        return { topic: batch.topic, partition: batch.partition, bytes, attemptsUntil };
      });
      return { sent, verdicts: await this.#wire.produce(node, encoded) };
    });
    let progress = false;
    for (const { sent, verdicts } of await Promise.all(rounds))
      for (const [i, flight] of sent.entries()) progress = this.#apply(flights, flight, verdicts[i]!) || progress;
    return progress;
  }

  /**
   * Makes sure that there is a producer identity. Renews it if needed, once no batch depends on the old one. @returns
   * whether there is one
   */
  async #identify(flights: readonly Flight[]): Promise<boolean> {
    if (this.#renewal !== 'none' && !flights.some(({ ambiguous }) => ambiguous)) this.#renew();
    if (this.#identity !== null) return true;
    this.#identity = await this.#wire.newProducerId().catch(() => null);
    return this.#identity !== null;
  }

  /**
   * Brokers that have seen the new epoch refuse requests of an older one, and sequence numbers restart at 0. Java's
   * client does the same for an idempotent producer without transactions.
   */
  #renew() {
    const isLast = this.#renewal === 'id' || (this.#identity?.producerEpoch ?? 0) >= EPOCH_LAST;
    this.#renewal = 'none';
    this.#sequences.clear();
    if (isLast || this.#identity === null) this.#identity = null;
    else this.#identity = { ...this.#identity, producerEpoch: this.#identity.producerEpoch + 1 };
  }

  /** The first flight of every partition with a leader, stamped, grouped by leader. */
  #byLeader(flights: readonly Flight[]): Map<number, Flight[]> {
    const byNode = new Map<number, Flight[]>();
    const busy = new Set<string>();
    for (const flight of flights) {
      const name = nameOf(flight.batch);
      const leader = this.#wire.leaderOf(flight.batch.topic, flight.batch.partition);
      if (busy.has(name)) continue;
      busy.add(name);
      if (leader < 0 || (!flight.ambiguous && this.#renewal !== 'none')) continue;
      if (!flight.ambiguous) {
        flight.sequence = this.#sequences.get(name) ?? 0;
        stampBatch(flight.bytes, { ...this.#identity!, sequence: flight.sequence });
      }
      const sent = byNode.get(leader);
      if (sent === undefined) byNode.set(leader, [flight]);
      else sent.push(flight);
    }
    return byNode;
  }

  /** @returns whether the flight made progress */
  #apply(flights: Flight[], flight: Flight, verdict: Verdict): boolean {
    if (verdict.kind === 'again') {
      flight.ambiguous ||= verdict.ambiguous;
      return false;
    }
    if (verdict.kind === 'stored') {
      this.#sequences.set(nameOf(flight.batch), (flight.sequence + flight.batch.records.length) % SEQUENCE_END);
      if (verdict.base !== null) reportOffsets(flight.batch, verdict.base);
      this.#land(flights, flight, null);
      return true;
    }
    if (verdict.kind === 'identity') this.#require('id');
    // This request was not stored, but an earlier attempt may have been. Halves of the batch, or the batch under
    // another identity, would not be recognised as copies. So it fails with an unknown outcome.
    if (flight.ambiguous) this.#require('epoch');
    else if (verdict.kind === 'tooLarge' && flight.batch.records.length > 1) {
      const [first, second] = splitFlight(flight);
      flights.splice(flights.indexOf(flight), 1, first!, second!);
      return true;
    } else if (verdict.kind === 'identity' && flight.identityChanges++ < IDENTITY_CHANGES_MAX) return false;
    const { code } = verdict;
    this.#land(flights, flight, new ProduceFault(code, `${nameOf(flight.batch)} refused the records: ${code}`));
    return true;
  }

  #land(flights: Flight[], flight: Flight, fault: Error | null) {
    flights.splice(flights.indexOf(flight), 1);
    for (const { shipment, count } of flight.batch.owners) this.#settle(shipment, count, fault);
  }
}

function nameOf({ topic, partition }: Batch): string {
  return `${topic}/${partition}`;
}

/** Reports the places of records: a batch is stored from its base offset on, in the order of its owners. */
function reportOffsets({ partition, owners }: Batch, base: BatchBase): void {
  let { offset } = base;
  for (const { shipment, count } of owners) {
    shipment.onStored?.({ partition, offset, loggedAtMs: base.loggedAtMs });
    offset += count;
  }
}

function createFlight(batch: Batch, bytes: Buffer): Flight {
  return { batch, bytes, attemptsUntil: attemptsUntilOf(batch), sequence: 0, ambiguous: false, identityChanges: 0 };
}

/** Whether no attempt may begin any more, or every shipment of the flight has failed already because of its time-out. */
function isGivenUp({ batch, attemptsUntil }: Flight): boolean {
  return attemptsUntil <= performance.now() || batch.owners.every(({ shipment }) => shipment.done === null);
}

/** Splits a batch that is too large for its topic into two halves, to be sent one after the other. */
function splitFlight({ batch }: Flight): Flight[] {
  const middle = batch.records.length >> 1;
  const halves: Batch[] = [
    { ...batch, records: batch.records.slice(0, middle), owners: [] },
    { ...batch, records: batch.records.slice(middle), owners: [] },
  ];
  let index = 0;
  for (const { shipment, count } of batch.owners) {
    const first = Math.max(0, Math.min(count, middle - index));
    if (first > 0) halves[0]!.owners.push({ shipment, count: first });
    if (count > first) halves[1]!.owners.push({ shipment, count: count - first });
    index += count;
  }
  return halves.map((half) => {
    const bytes = Buffer.allocUnsafe(batch.bytesMax);
    return createFlight(half, bytes.subarray(0, encodeBatch(bytes, 0, half.records)));
  });
}
