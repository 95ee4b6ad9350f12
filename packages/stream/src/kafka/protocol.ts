/**
 * Longer than a leader waits for its replicas. Short, because a client learns only from a timeout that a broker is
 * frozen, and because the producer must have time for retries before its delivery timeout.
 */
export const REQUEST_TIMEOUT_MS = 5_000;
export const CONNECT_TIMEOUT_MS = 3_000;
export const NO_REPLICA = -1;
/** Used if the sender does not know the leader's epoch. */
export const NO_EPOCH = -1;
/** Without a fetch session, every request lists all its partitions. */
export const NO_SESSION = { id: 0, epoch: -1 } as const;
/** Special timestamps for a log's start and end offsets. */
export const EARLIEST = -2n;
export const LATEST = -1n;
/** Returns all records, including those after an open transaction. */
export const READ_UNCOMMITTED = 0;
/** Returns the records before the first open transaction. */
export const READ_COMMITTED = 1;
/** Limits a response to one batch, because brokers always send at least one batch. */
export const ONE_BATCH_BYTES = 1;

/** The record batch format since Kafka 0.11, which is the only format supported here. */
export const BATCH_MAGIC = 2;

/** Byte offsets in a batch header. `length` counts the bytes after itself. The checksum starts at `attributes`. */
export const BATCH_HEADER = {
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

/** Attribute: the broker assigned the time of all records, which is in the batch header. */
export const IS_LOG_APPEND = 8;
/** Attribute: the batch is part of a transaction. */
export const IS_TRANSACTIONAL = 16;
/** Attribute: the batch contains a transaction marker instead of records. */
export const IS_CONTROL = 32;

/** The second half of the marker key if the transaction was aborted. */
const ABORT = 0;

/** @param key the key of the record in a marker batch */
export function isAbortMarker(key: Buffer | null | undefined): boolean {
  return key != null && key.length >= 4 && key.readInt16BE(2) === ABORT;
}
