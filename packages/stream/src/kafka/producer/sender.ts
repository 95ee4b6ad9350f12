import { setTimeout as delay } from 'node:timers/promises';
import type { Batch, Shipment } from './batch-plan.ts';
import { type BatchBase, ProduceFault, type Verdict } from './broker-faults.ts';
import { encodeBatch, stampBatch } from './record-batch.ts';
import type { EncodedBatch, Wire } from './wire.ts';

/** Waits between attempts of one send: short enough to be back in the second a broker comes back. */
const RETRY_WAIT_MIN_MS = 50;
const RETRY_WAIT_MAX_MS = 1_000;
/** Sequence numbers wrap here, as brokers count them. */
const SEQUENCE_END = 2 ** 31;
/** The last epoch of a producer id; behind it a new id is taken. */
const EPOCH_LAST = 32_766;
/** How often one batch may be put under a new producer id before it fails: more would be a broker that never accepts. */
const IDENTITY_CHANGES_MAX = 3;
const ARENA_BYTES_MIN = 256 * 1024;

interface Identity {
  producerId: bigint;
  producerEpoch: number;
}

/** A batch on its way. */
interface Flight {
  readonly batch: Batch;
  readonly bytes: Buffer;
  /** Its first sequence number, once it is stamped; kept through all attempts from the first that was ambiguous. */
  sequence: number;
  /** An attempt under this sequence has left and was neither acknowledged nor refused for good: it may stand in the log. */
  ambiguous: boolean;
  identityChanges: number;
}

export type Settle = (shipment: Shipment, count: number, fault: Error | null) => void;

/**
 * What must happen before another batch gets a sequence number: nothing, the next epoch of this producer id, or
 * another id, where a broker does not accept this one.
 */
type Renewal = 'none' | 'epoch' | 'id';

/**
 * Brings one send after the other into the log, each record once.
 *
 * What makes it once: a batch keeps its bytes and its sequence number from the first attempt that may have been stored,
 * so the broker recognises its repetition; only one batch of a partition is on its way at a time, so no later one can
 * overtake it; and where nobody knows what became of a number (its batch was given up, or refused after an attempt that
 * may have been stored), no other batch gets a number before the producer's epoch has ended. The epoch ends when no
 * batch of it is ambiguous any more: a repetition is recognised only in the epoch of the attempt that it repeats.
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
   * @param settle told of every record once, as a count of records of one shipment
   * @param retryWaitMinMs first wait between attempts of one send
   */
  constructor(wire: Wire, settle: Settle, retryWaitMinMs = RETRY_WAIT_MIN_MS) {
    this.#wire = wire;
    this.#settle = settle;
    this.#retryWaitMinMs = retryWaitMinMs;
  }

  /** Returns when every record is acknowledged or refused, or when nobody waits for any of the others any more. */
  async deliver(batches: readonly Batch[]): Promise<void> {
    try {
      await this.#deliver(this.#encode(batches));
    } catch (error) {
      // What has left under which number is not known here.
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

  /** Nobody waits for them, and whoever did sends the records again: from here on they would only be copies. */
  #dropGivenUp(flights: Flight[]): void {
    for (const flight of flights.filter(isGivenUp)) {
      flights.splice(flights.indexOf(flight), 1);
      if (flight.ambiguous) this.#require('epoch');
    }
  }

  #require(renewal: Renewal): void {
    if (this.#renewal !== 'id') this.#renewal = renewal;
  }

  #encode(batches: readonly Batch[]): Flight[] {
    const room = batches.reduce((sum, { bytesMax }) => sum + bytesMax, 0);
    // One send at a time, and the client copies a request before it writes it, so one arena is enough.
    if (this.#arena.length < room) this.#arena = Buffer.allocUnsafeSlow(Math.max(room, this.#arena.length * 2));
    let at = 0;
    return batches.map((batch) => {
      const end = encodeBatch(this.#arena, at, batch.records);
      const bytes = this.#arena.subarray(at, end);
      at = end;
      return createFlight(batch, bytes);
    });
  }

  /** One round to every leader concerned; settled flights leave the list. @returns whether something moved */
  async #attempt(flights: Flight[]): Promise<boolean> {
    if (!(await this.#identify(flights))) return false;
    const rounds = [...this.#byLeader(flights)].map(async ([node, sent]) => {
      const encoded = sent.map(({ batch, bytes }): EncodedBatch => {
        return { topic: batch.topic, partition: batch.partition, bytes };
      });
      return { sent, verdicts: await this.#wire.produce(node, encoded) };
    });
    let progress = false;
    for (const { sent, verdicts } of await Promise.all(rounds))
      for (const [i, flight] of sent.entries()) progress = this.#apply(flights, flight, verdicts[i]!) || progress;
    return progress;
  }

  /** Has a producer id, renewed where it must be and no batch depends on the old one. @returns whether there is one */
  async #identify(flights: readonly Flight[]): Promise<boolean> {
    if (this.#renewal !== 'none' && !flights.some(({ ambiguous }) => ambiguous)) this.#renew();
    if (this.#identity !== null) return true;
    this.#identity = await this.#wire.newProducerId().catch(() => null);
    return this.#identity !== null;
  }

  /**
   * Brokers refuse a request of an older epoch once they have seen the new one, and a new epoch counts its sequences
   * from 0: Java's client does the same for an idempotent producer without transactions.
   */
  #renew() {
    const isLast = this.#renewal === 'id' || (this.#identity?.producerEpoch ?? 0) >= EPOCH_LAST;
    this.#renewal = 'none';
    this.#sequences.clear();
    if (isLast || this.#identity === null) this.#identity = null;
    else this.#identity = { ...this.#identity, producerEpoch: this.#identity.producerEpoch + 1 };
  }

  /** The first flight of every partition that has a leader, stamped, by that leader. */
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

  /** @returns whether the flight moved on */
  #apply(flights: Flight[], flight: Flight, verdict: Verdict): boolean {
    if (verdict.kind === 'again') {
      flight.ambiguous ||= verdict.ambiguous;
      return false;
    }
    if (verdict.kind === 'stored') {
      this.#sequences.set(nameOf(flight.batch), (flight.sequence + flight.batch.records.length) % SEQUENCE_END);
      if (verdict.base !== null) tellPlaces(flight.batch, verdict.base);
      this.#land(flights, flight, null);
      return true;
    }
    if (verdict.kind === 'identity') this.#require('id');
    // The broker says that it did not store this request. Of an earlier attempt nobody knows, and neither halves nor
    // another identity would be recognised as its repetition: whoever waits is told that nobody knows.
    if (flight.ambiguous) this.#require('epoch');
    else if (verdict.kind === 'tooLarge' && flight.batch.records.length > 1) {
      flights.splice(flights.indexOf(flight), 1, ...splitFlight(flight));
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

/** Records of a batch stand one behind the other from its base offset on, in the order of its owners. */
function tellPlaces({ partition, owners }: Batch, base: BatchBase): void {
  let { offset } = base;
  for (const { shipment, count } of owners) {
    shipment.onPlace?.({ partition, offset, loggedAtMs: base.loggedAtMs });
    offset += count;
  }
}

function createFlight(batch: Batch, bytes: Buffer): Flight {
  return { batch, bytes, sequence: 0, ambiguous: false, identityChanges: 0 };
}

/** Every shipment of the flight has failed already: its time was up. */
function isGivenUp({ batch }: Flight): boolean {
  return batch.owners.every(({ shipment }) => shipment.done === null);
}

/** Two halves of a batch that is too large for its topic, to go one after the other. */
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
