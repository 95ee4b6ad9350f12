/** Format of record batches since Kafka 0.11. No other is written or read here. */
export const BATCH_MAGIC = 2;

/**
 * Byte offsets of the fields in the head of a batch; the first record begins at `records`. `length` counts the bytes
 * after it. The checksum covers everything from the attributes on.
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
