import { createRequire } from 'node:module';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { PublishedRecord } from '../../ports.ts';
import { BATCH_HEADER_BYTES, encodeBatch, RecordSizes, stampBatch } from './record-batch.ts';

interface Decoded {
  producerId: string;
  producerEpoch: number;
  firstSequence: number;
  lastOffsetDelta: number;
  records: { key: Buffer | null; value: Buffer | null; headers: Record<string, Buffer>; offset: string }[];
}

// kafkajs is an independent implementation of the format.
const require = createRequire(import.meta.url);
const Decoder = require('kafkajs/src/protocol/decoder');
const decodeBatch: (decoder: unknown) => Promise<Decoded> = require('kafkajs/src/protocol/recordBatch/v0/decoder');
const crc32C: (data: Buffer) => number = require('kafkajs/src/protocol/recordBatch/crc32C');

const bytes = fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array));
// kafkajs collects headers in a plain object.
const headerName = fc.string({ minLength: 1, unit: 'grapheme' }).filter((name) => !(name in {}));
const headers = fc.dictionary(headerName, fc.oneof(bytes, fc.string()));
const record: fc.Arbitrary<PublishedRecord> = fc.record({
  topic: fc.constant('topic'),
  key: fc.option(bytes),
  value: fc.option(bytes),
  headers: headers,
});

function encode(records: readonly PublishedRecord[], at = 0): Buffer {
  const sizes = new RecordSizes();
  const size = records.reduce((sum, each) => sum + sizes.bytesMaxOf(each), at + BATCH_HEADER_BYTES);
  const target = Buffer.alloc(size, 0xaa);
  const end = encodeBatch(target, at, records);
  expect(end).toBeLessThanOrEqual(size);
  const batch = target.subarray(at, end);
  stampBatch(batch, { producerId: 7n, producerEpoch: 3, sequence: 42 });
  return batch;
}

it('kafkajs decodes the keys, values, headers, sequence and checksum of an encoded batch', async () => {
  const property = fc.asyncProperty(fc.array(record, { minLength: 1, maxLength: 80 }), async (records) => {
    const batch = encode(records, 5);
    expect(batch.readUInt32BE(17)).toBe(crc32C(batch.subarray(21)));
    const decoder = new Decoder(batch);
    const decoded = await decodeBatch(decoder);
    expect(decoded).toMatchObject({
      producerId: '7',
      producerEpoch: 3,
      firstSequence: 42,
      lastOffsetDelta: records.length - 1,
    });
    for (const [i, { key, value, headers = {} }] of records.entries()) {
      const found = decoded.records[i]!;
      expect(found.key).toEqual(key);
      expect(found.value).toEqual(value);
      expect(found.offset).toBe(String(i));
      const expected = Object.entries(headers).map(([name, text]) => [name, Buffer.from(text)]);
      expect(found.headers).toEqual(Object.fromEntries(expected));
    }
  });
  await fc.assert(property, { numRuns: 100 });
});

it('an encoded batch supports length fields of every size', async () => {
  for (const size of [0, 1, 63, 64, 8_191, 8_192, 1_048_575, 1_048_576]) {
    const value = Buffer.alloc(size, 'v');
    const decoded = await decodeBatch(new Decoder(encode([{ topic: 'topic', key: null, value }])));
    expect(decoded.records[0]?.value?.equals(value)).toBe(true);
  }
});
