import type { PublishedRecord, RecordPlace } from '../../ports.ts';
import { BATCH_HEAD_BYTES, RecordSizes } from './record-batch.ts';
import type { Wire } from './wire.ts';

/**
 * One call of `send`: settled when the last of its records is. Plain object with counters, not a promise:
 * there may be tens of thousands a second.
 */
export interface Shipment {
  readonly records: readonly PublishedRecord[];
  readonly bytes: number;
  /** By `performance.now()`: a wall clock that is set must neither hurry nor delay it. */
  readonly dueAt: number;
  /** Records before this one are in a batch already. */
  taken: number;
  /** Records neither acknowledged nor failed. */
  open: number;
  fault: Error | null;
  /** Null once it has been called. */
  done: ((fault: Error | null) => void) | null;
  /** Told the place of the shipment's only record before it is settled; absent where nobody asks. */
  readonly onPlace?: (place: RecordPlace) => void;
}

/** Records of one partition that travel together under one sequence number. */
export interface Batch {
  readonly topic: string;
  readonly partition: number;
  readonly records: PublishedRecord[];
  /** Which shipments the records belong to, in the order of the records. */
  readonly owners: { shipment: Shipment; count: number }[];
  bytesMax: number;
}

/**
 * Past this a request is sealed: after a pause of the broker a backlog in one request of 16 MB never recovered
 * (measured), since it outlived every time-out.
 */
const REQUEST_BYTES_MAX = 4 * 1024 * 1024;
/** Under the 1 MB that a topic takes by default; a record larger than this travels alone. */
const PARTITION_BYTES_MAX = 900 * 1024;

/** Chooses partitions: the one that the record names, else by the key, else one after the other, the same for all keyless records of a shipment. */
export function createPartitioner(wire: Wire, toPartition: (key: Buffer, count: number) => number) {
  let turn = 0;
  let last: Shipment | null = null;
  let lastKey: Buffer | null = null;
  let lastCount = 0;
  let lastPartition = 0;
  return (shipment: Shipment, record: PublishedRecord): number => {
    if (record.partition !== undefined) return record.partition;
    const count = wire.partitionCount(record.topic);
    if (record.key !== null) {
      // Records of one owner mostly follow each other and share their key.
      if (record.key !== lastKey || count !== lastCount) lastPartition = toPartition(record.key, count);
      lastKey = record.key;
      lastCount = count;
      return lastPartition;
    }
    if (shipment !== last) turn = (turn + 1) % 0x3fffffff;
    last = shipment;
    // a partition that nobody leads now is left out
    for (let step = 0; step < count; step++)
      if (wire.leaderOf(record.topic, (turn + step) % count) >= 0) return (turn + step) % count;
    return turn % count;
  };
}

/**
 * Takes records off the front of `queue` into batches, at most one a partition, until a bound is reached or the queue
 * is empty. Order is kept: the first record that does not fit ends the request.
 */
export function takeBatches(
  queue: Shipment[],
  partitionOf: (shipment: Shipment, record: PublishedRecord) => number,
): Batch[] {
  const plan = new RequestPlan();
  let finished = 0;
  scan: for (const shipment of queue) {
    const { records } = shipment;
    for (; shipment.done !== null && shipment.taken < records.length; shipment.taken++) {
      const record = records[shipment.taken]!;
      if (!plan.add(shipment, record, partitionOf(shipment, record))) break scan;
    }
    finished++;
  }
  queue.splice(0, finished);
  return plan.batches;
}

/** What is to go in one request. */
class RequestPlan {
  readonly batches: Batch[] = [];
  readonly #topics = new Map<string, Batch[]>();
  readonly #sizes = new RecordSizes();
  #bytes = 0;
  /** Topic of the record before and its batches by partition: mostly the next one's too. */
  #topic = '';
  #ofTopic: Batch[] = [];

  /** @returns false when the record does not fit any more */
  add(shipment: Shipment, record: PublishedRecord, partition: number): boolean {
    if (record.topic !== this.#topic) this.#turnTo(record.topic);
    const size = this.#sizes.bytesMaxOf(record);
    const batch = this.#ofTopic[partition];
    if (this.#bytes > 0 && this.#bytes + size > REQUEST_BYTES_MAX) return false;
    if (batch !== undefined && batch.bytesMax + size > PARTITION_BYTES_MAX) return false;
    this.#bytes += size;
    append(batch ?? this.#open(record.topic, partition), shipment, { record, size });
    return true;
  }

  #turnTo(topic: string) {
    this.#topic = topic;
    this.#ofTopic = this.#topics.get(topic) ?? [];
    this.#topics.set(topic, this.#ofTopic);
  }

  #open(topic: string, partition: number): Batch {
    const batch: Batch = { topic, partition, records: [], owners: [], bytesMax: BATCH_HEAD_BYTES };
    this.batches.push(batch);
    this.#ofTopic[partition] = batch;
    return batch;
  }
}

function append(batch: Batch, shipment: Shipment, { record, size }: { record: PublishedRecord; size: number }) {
  batch.records.push(record);
  batch.bytesMax += size;
  const last = batch.owners[batch.owners.length - 1];
  if (last !== undefined && last.shipment === shipment) last.count++;
  else batch.owners.push({ shipment, count: 1 });
}
