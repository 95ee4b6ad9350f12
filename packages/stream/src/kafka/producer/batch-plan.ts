import type { PublishedRecord, RecordMetadata } from '../../ports.ts';
import { BATCH_HEADER_BYTES, RecordSizes } from './record-batch.ts';
import type { Cluster } from './sender.ts';

/** A call to `send`. A plain object with counters, because there may be tens of thousands of calls per second. */
export interface SendCall {
  readonly records: readonly PublishedRecord[];
  readonly bytes: number;
  /** When the delivery times out, from `performance.now()`. */
  readonly dueAt: number;
  /** No attempt starts after this time. Usually infinite. */
  readonly attemptsUntil: number;
  batched: number;
  pending: number;
  fault: Error | null;
  /** Null after it was called. */
  done: ((fault: Error | null) => void) | null;
  /** Called before `done` with the offset of the only record. */
  readonly onStored?: (stored: RecordMetadata) => void;
}

/** Records for one partition that are sent together with one sequence number. */
export interface Batch {
  readonly topic: string;
  readonly partition: number;
  readonly records: PublishedRecord[];
  /** The calls that sent the records, in record order. */
  readonly owners: { sendCall: SendCall; count: number }[];
  bytesMax: number;
}

/** Limits requests after a broker outage: a backlog in one request of 16 MB exceeded every timeout. */
const REQUEST_BYTES_MAX = 4 * 1024 * 1024;
/** Less than the default topic limit of 1 MB. A larger record is sent alone. */
const PARTITION_BYTES_MAX = 900 * 1024;

/**
 * Selects a record's `partition` if set, the partition of its key, or the next partition for a call's keyless records.
 */
export function createPartitioner(cluster: Cluster, toPartition: (key: Buffer, count: number) => number) {
  let roundRobin = 0;
  let last: SendCall | null = null;
  let lastKey: Buffer | null = null;
  let lastCount = 0;
  let lastPartition = 0;
  return (sendCall: SendCall, record: PublishedRecord): number => {
    if (record.partition !== undefined) return record.partition;
    const count = cluster.partitionCount(record.topic);
    if (record.key !== null) {
      // Cached, because consecutive records usually have the same key.
      if (record.key !== lastKey || count !== lastCount) lastPartition = toPartition(record.key, count);
      lastKey = record.key;
      lastCount = count;
      return lastPartition;
    }
    if (sendCall !== last) roundRobin = (roundRobin + 1) % 0x3fffffff;
    last = sendCall;
    // Skips partitions without a leader.
    for (let step = 0; step < count; step++)
      if (cluster.leaderOf(record.topic, (roundRobin + step) % count) >= 0) return (roundRobin + step) % count;
    return roundRobin % count;
  };
}

/**
 * Moves records from the start of `queue` into batches, at most one batch per partition. Stops at the first record that
 * does not fit, which preserves the order.
 */
export function takeBatches(
  queue: SendCall[],
  partitionOf: (sendCall: SendCall, record: PublishedRecord) => number,
): Batch[] {
  const plan = new RequestPlan();
  let finished = 0;
  scan: for (const sendCall of queue) {
    const { records } = sendCall;
    for (; sendCall.done !== null && !isExpired(sendCall) && sendCall.batched < records.length; sendCall.batched++) {
      const record = records[sendCall.batched]!;
      if (!plan.add(sendCall, record, partitionOf(sendCall, record))) break scan;
    }
    finished++;
  }
  queue.splice(0, finished);
  return plan.batches;
}

function isExpired({ attemptsUntil }: SendCall): boolean {
  return attemptsUntil !== Number.POSITIVE_INFINITY && attemptsUntil <= performance.now();
}

export function attemptsUntilOf({ owners }: Batch): number {
  let until = Number.POSITIVE_INFINITY;
  for (const { sendCall } of owners) until = Math.min(until, sendCall.attemptsUntil);
  return until;
}

class RequestPlan {
  readonly batches: Batch[] = [];
  readonly #topics = new Map<string, Batch[]>();
  readonly #sizes = new RecordSizes();
  #bytes = 0;
  /** Cached: the previous record's topic, and the topic's batches by partition. */
  #topic = '';
  #topicBatches: Batch[] = [];

  /** @returns false if the record does not fit */
  add(sendCall: SendCall, record: PublishedRecord, partition: number): boolean {
    if (record.topic !== this.#topic) this.#selectTopic(record.topic);
    const size = this.#sizes.bytesMaxOf(record);
    const batch = this.#topicBatches[partition];
    if (this.#bytes > 0 && this.#bytes + size > REQUEST_BYTES_MAX) return false;
    if (batch !== undefined && batch.bytesMax + size > PARTITION_BYTES_MAX) return false;
    this.#bytes += size;
    append(batch ?? this.#open(record.topic, partition), sendCall, { record, size });
    return true;
  }

  #selectTopic(topic: string) {
    this.#topic = topic;
    this.#topicBatches = this.#topics.get(topic) ?? [];
    this.#topics.set(topic, this.#topicBatches);
  }

  #open(topic: string, partition: number): Batch {
    const batch: Batch = { topic, partition, records: [], owners: [], bytesMax: BATCH_HEADER_BYTES };
    this.batches.push(batch);
    this.#topicBatches[partition] = batch;
    return batch;
  }
}

function append(batch: Batch, sendCall: SendCall, { record, size }: { record: PublishedRecord; size: number }) {
  batch.records.push(record);
  batch.bytesMax += size;
  const last = batch.owners[batch.owners.length - 1];
  if (last !== undefined && last.sendCall === sendCall) last.count++;
  else batch.owners.push({ sendCall, count: 1 });
}
