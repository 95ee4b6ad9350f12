export const NO_REPLICA = -1;
/** The sender does not know the leader's epoch. */
export const NO_EPOCH = -1;
/** No fetch session: every request names everything it wants. */
export const NO_SESSION = { id: 0, epoch: -1 } as const;
/** Special timestamps of a log's first offset and its end. */
export const EARLIEST = -2n;
export const LATEST = -1n;
/** Includes records after an open transaction. */
export const READ_UNCOMMITTED = 0;
/** Records before the first open transaction. */
export const READ_COMMITTED = 1;
/** Limits a response to one batch: brokers always send at least one. */
export const ONE_BATCH_BYTES = 1;

/** Format of record batches since Kafka 0.11. No other is written or read here. */
export const BATCH_MAGIC = 2;

/** Byte offsets in the head of a batch. `length` counts the bytes after it; the checksum covers the rest from `attributes`. */
export const BATCH_HEAD = {
  firstOffset: 0,
  length: 8,
  leaderEpoch: 12,
  magic: 16,
  crc: 17,
  attributes: 21,
  lastOffsetDelta: 23,
  firstTime: 27,
  maxTime: 35,
  producerId: 43,
  producerEpoch: 51,
  sequence: 53,
  count: 57,
  records: 61,
} as const;

/** Attributes. The broker sets the time of all records, in the head of the batch. */
export const IS_LOG_APPEND = 8;
/** The batch is part of a transaction. */
export const IS_TRANSACTIONAL = 16;
/** The batch holds a transaction marker instead of records. */
export const IS_CONTROL = 32;

/** Second half of a marker's key when the transaction was aborted. */
const ABORT = 0;

/** @param key of the record in a batch with a marker */
export function isAbortMarker(key: Buffer | null | undefined): boolean {
  return key != null && key.length >= 4 && key.readInt16BE(2) === ABORT;
}
