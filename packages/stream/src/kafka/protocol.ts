export const NO_REPLICA = -1;
/** The sender does not know the leader's epoch. */
export const NO_EPOCH = -1;
/** No fetch session: every request lists all its partitions. */
export const NO_SESSION = { id: 0, epoch: -1 } as const;
/** Special timestamps for a log's first offset and its end. */
export const EARLIEST = -2n;
export const LATEST = -1n;
/** Includes records after an open transaction. */
export const READ_UNCOMMITTED = 0;
/** Records before the first open transaction. */
export const READ_COMMITTED = 1;
/** Limits a response to one batch, because brokers always send at least one. */
export const ONE_BATCH_BYTES = 1;

/** Record batch format since Kafka 0.11; the only format that is written or read here. */
export const BATCH_MAGIC = 2;

/**
 * Byte offsets in a batch header. `length` counts the bytes after itself; the checksum covers the bytes from
 * `attributes`.
 */
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

/** Attribute: the broker sets the time of all records, in the batch header. */
export const IS_LOG_APPEND = 8;
/** Attribute: the batch is part of a transaction. */
export const IS_TRANSACTIONAL = 16;
/** Attribute: the batch contains a transaction marker instead of records. */
export const IS_CONTROL = 32;

/** Second half of the marker key for an aborted transaction. */
const ABORT = 0;

/** @param key key of the record in a marker batch */
export function isAbortMarker(key: Buffer | null | undefined): boolean {
  return key != null && key.length >= 4 && key.readInt16BE(2) === ABORT;
}
