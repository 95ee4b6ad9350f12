/** Format of record batches since Kafka 0.11. Our code writes and reads no other. */
export const BATCH_MAGIC = 2;

/**
 * Where the fields of a batch's head begin, in bytes; the first record begins at `records`. `length` counts the bytes
 * behind itself. The checksum covers everything from the attributes on.
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
