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
  /** First sequence number; null until it is stamped. The same through all attempts. */
  sequence: number | null;
  /** An attempt under this sequence may have been stored although it was not acknowledged. */
  ambiguous: boolean;
  /** Must not go again before nothing of the present identity is on its way. */
  needsIdentity: boolean;
  identityChanges: number;
}

export type Settle = (shipment: Shipment, count: number, fault: Error | null) => void;

/**
 * Brings one send after the other into the log, each record once.
 *
 * What makes it once: a batch keeps its bytes and its sequence number through all attempts, so the broker recognises
 * it; only one batch of a partition is on its way at a time, so no later one can overtake it; and a send that was given
 * up while one of its batches may still arrive ends the producer's epoch, so that a late arrival cannot take a
 * sequence number that now belongs to another record.
 */
export class Sender {
  readonly #wire: Wire;
  readonly #settle: Settle;
  readonly #retryWaitMinMs: number;
  readonly #sequences = new Map<string, number>();
  #identity: Identity | null = null;
  #arena = Buffer.allocUnsafeSlow(ARENA_BYTES_MIN);
  /** The present epoch must end before the next send: something of it may still arrive. */
  #tainted = false;

  /**
   * @param settle told of every record once, as a count of records of one shipment
   * @param retryWaitMinMs first wait between attempts of one send
   */
  constructor(wire: Wire, settle: Settle, retryWaitMinMs = RETRY_WAIT_MIN_MS) {
    this.#wire = wire;
    this.#settle = settle;
    this.#retryWaitMinMs = retryWaitMinMs;
  }

  /** Returns when every record is acknowledged or refused, or when nobody waits for any of them any more. */
  async deliver(batches: readonly Batch[]): Promise<void> {
    const flights = this.#encode(batches);
    let wait = this.#retryWaitMinMs;
    for (;;) {
      const progress = await this.#attempt(flights);
      if (flights.length === 0) break;
      if (flights.every(isGivenUp)) {
        this.#tainted ||= flights.some(({ ambiguous }) => ambiguous);
        break;
      }
      if (progress) wait = this.#retryWaitMinMs;
      else {
        await delay(wait);
        wait = Math.min(RETRY_WAIT_MAX_MS, wait * 2);
        await this.#wire.refresh(new Set(flights.map(({ batch }) => batch.topic)));
      }
    }
    if (this.#tainted) this.#endEpoch();
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

  /** Has a producer id. A new one for batches that need it is taken only when no other batch depends on the old one. */
  async #identify(flights: readonly Flight[]): Promise<boolean> {
    if (flights.some(({ needsIdentity }) => needsIdentity) && flights.every(({ sequence }) => sequence === null)) {
      for (const flight of flights) flight.needsIdentity = false;
      this.#sequences.clear();
      this.#identity = null;
    }
    if (this.#identity !== null) return true;
    this.#identity = await this.#wire.newProducerId().catch(() => null);
    return this.#identity !== null;
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
      if (leader < 0 || flight.needsIdentity) continue;
      if (flight.sequence === null) {
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
      this.#sequences.set(nameOf(flight.batch), (flight.sequence! + flight.batch.records.length) % SEQUENCE_END);
      if (verdict.base !== null) tellPlaces(flight.batch, verdict.base);
      this.#land(flights, flight, null);
      return true;
    }
    // The broker says that it did not store this request; an earlier attempt of it still may have been.
    this.#tainted ||= flight.ambiguous;
    if (verdict.kind === 'tooLarge' && flight.batch.records.length > 1) {
      flights.splice(flights.indexOf(flight), 1, ...splitFlight(flight));
      return true;
    }
    const mayChange = verdict.kind === 'identity' && !flight.ambiguous;
    if (mayChange && flight.identityChanges < IDENTITY_CHANGES_MAX) {
      flight.sequence = null;
      flight.needsIdentity = true;
      flight.identityChanges++;
      return false;
    }
    this.#tainted ||= verdict.kind === 'identity';
    const code = 'code' in verdict ? verdict.code : 'MESSAGE_TOO_LARGE';
    this.#land(flights, flight, new ProduceFault(code, `${nameOf(flight.batch)} refused the records: ${code}`));
    return true;
  }

  #land(flights: Flight[], flight: Flight, fault: Error | null) {
    flights.splice(flights.indexOf(flight), 1);
    for (const { shipment, count } of flight.batch.owners) this.#settle(shipment, count, fault);
  }

  /**
   * Brokers refuse a request of an older epoch once they have seen the new one, and a new epoch counts its sequences
   * from 0: Java's client does the same for an idempotent producer without transactions.
   */
  #endEpoch() {
    this.#tainted = false;
    this.#sequences.clear();
    if (this.#identity === null) return;
    const { producerId, producerEpoch } = this.#identity;
    this.#identity = producerEpoch >= EPOCH_LAST ? null : { producerId, producerEpoch: producerEpoch + 1 };
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
  return { batch, bytes, sequence: null, ambiguous: false, needsIdentity: false, identityChanges: 0 };
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
