import { expect, it } from 'vitest';
import { createScannedBatch, FIELD, ROW_SHIFT, type ScannedBatch } from '../scan/ranges.ts';
import type { EncodedRecord } from './encode-batch.ts';
import { createBatchEncoder } from './encode-batch.ts';

const MIB = 1024 * 1024;
const SLAB_BYTES = MIB / 2;
const ENVELOPE = { schemaId: 7, environmentId: 'demo-test', receivedAt: 1_790_000_000_000, traceId: 'ab'.repeat(16) };

/** Creates a scanned batch of page messages with a title in a body of 1 MiB that is otherwise white space. */
function createPages(title: string, count = 1): ScannedBatch {
  const batch = createScannedBatch();
  const [type, text] = [Buffer.from('page'), Buffer.from(title)];
  const parts = Array.from({ length: count }, () => [type, text]).flat();
  batch.body = Buffer.concat([Buffer.alloc(MIB - count * (type.length + text.length), ' '), ...parts]);
  batch.count = count;
  batch.accepted.fill(1, 0, count);
  const setRange = (message: number, field: number, [start, length]: readonly [number, number]) => {
    const slot = (message << ROW_SHIFT) + field;
    batch.starts[slot] = start;
    batch.ends[slot] = start + length;
  };
  for (let message = 0; message < count; message++) {
    const at = MIB - (count - message) * (type.length + text.length);
    setRange(message, FIELD.type, [at, type.length]);
    setRange(message, FIELD.pageTitle, [at + type.length, text.length]);
    if (title.includes('\\')) batch.escaped[message] = 1 << FIELD.pageTitle;
  }
  return batch;
}

const bytesOf = (records: readonly EncodedRecord[]) => records.reduce((sum, { value }) => sum + value.length, 0);
/** Returns the size of all buffers that the records reference. */
const referencedBytes = (records: readonly EncodedRecord[]) =>
  [...new Set(records.map(({ value }) => value.buffer))].reduce((sum, { byteLength }) => sum + byteLength, 0);

it.each([
  ['one small message', 'home', 1],
  ['escaped strings, which shrink to a sixth', '\\u0041'.repeat(1_000), 100],
  ['large messages', 'x'.repeat(10_000), 100],
])('records from 1 MiB bodies with %s use little more memory than their size', (_, title, count) => {
  const encode = createBatchEncoder();
  const records = Array.from({ length: 20 }, () =>
    encode(createPages(title, count), ENVELOPE, () => Buffer.alloc(16)),
  ).flat();
  expect(records).toHaveLength(20 * count);
  expect(referencedBytes(records)).toBeLessThan(2 * bytesOf(records) + SLAB_BYTES + 1);
});
