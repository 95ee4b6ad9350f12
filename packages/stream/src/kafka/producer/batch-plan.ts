import type { OutgoingRecord, RecordPlace } from '../../ports.ts';
import { BATCH_HEAD_BYTES, recordBytesMax } from './record-batch.ts';
import type { Wire } from './wire.ts';

/**
 * One call of `send`: settled when the last of its records is. Plain object with counters, not a promise:
 * there may be tens of thousands a second.
 */
export interface Shipment {
  readonly records: readonly OutgoingRecord[];
  readonly bytes: number;
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
  readonly records: OutgoingRecord[];
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

/** Chooses partitions: by the key, else one after the other, the same for all keyless records of a shipment. */
export function createPartitioner(wire: Wire, toPartition: (key: Buffer, count: number) => number) {
  let turn = 0;
  let last: Shipment | null = null;
  return (shipment: Shipment, record: OutgoingRecord): number => {
    const count = wire.partitionCount(record.topic);
    if (record.key !== null) return toPartition(record.key, count);
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
  partitionOf: (shipment: Shipment, record: OutgoingRecord) => number,
): Batch[] {
  const batches = new Map<string, Map<number, Batch>>();
  let bytes = 0;
  let finished = 0;
  scan: for (const shipment of queue) {
    for (; shipment.done !== null && shipment.taken < shipment.records.length; shipment.taken++) {
      const record = shipment.records[shipment.taken]!;
      const size = recordBytesMax(record);
      const partition = partitionOf(shipment, record);
      const batch = batches.get(record.topic)?.get(partition);
      if (bytes > 0 && bytes + size > REQUEST_BYTES_MAX) break scan;
      if (batch !== undefined && batch.bytesMax + size > PARTITION_BYTES_MAX) break scan;
      bytes += size;
      if (batch === undefined) addBatch(batches, { shipment, record, partition, size });
      else append(batch, { shipment, record, size });
    }
    finished++;
  }
  queue.splice(0, finished);
  return [...batches.values()].flatMap((partitions) => [...partitions.values()]);
}

function addBatch(
  batches: Map<string, Map<number, Batch>>,
  first: { shipment: Shipment; record: OutgoingRecord; partition: number; size: number },
) {
  const { topic } = first.record;
  const partitions = batches.get(topic) ?? new Map<number, Batch>();
  batches.set(topic, partitions);
  partitions.set(first.partition, {
    topic,
    partition: first.partition,
    records: [first.record],
    owners: [{ shipment: first.shipment, count: 1 }],
    bytesMax: BATCH_HEAD_BYTES + first.size,
  });
}

function append(
  batch: Batch,
  { shipment, record, size }: { shipment: Shipment; record: OutgoingRecord; size: number },
) {
  batch.records.push(record);
  batch.bytesMax += size;
  const last = batch.owners.at(-1)!;
  if (last.shipment === shipment) last.count++;
  else batch.owners.push({ shipment, count: 1 });
}
