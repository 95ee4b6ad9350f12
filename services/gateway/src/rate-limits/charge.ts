/**
 * Bytes that count as one message: a usual message of 940 bytes in a body of its own is one unit, and so is each of a
 * batch of them. A mebibyte of anything counts as a thousand, for it is as much work.
 */
const UNIT_BYTES = 1024;

/**
 * What a body costs under the limit of its key: as many units as it has messages, rejected ones too, or as it has KiB,
 * whichever is more; and one at least.
 * @param messages 0 for a body that is no batch
 * @param bytes of the body as sent or after decompression, whichever is more
 */
export function unitsOf(messages: number, bytes: number): number {
  return Math.max(1, messages, Math.ceil(bytes / UNIT_BYTES));
}
