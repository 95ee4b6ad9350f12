import { createRequire } from 'node:module';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type FetchedRecord, readRecords } from './record-decoding.ts';

const require = createRequire(import.meta.url);
const Decoder = require('kafkajs/src/protocol/decoder');
const Encoder = require('kafkajs/src/protocol/encoder');
const Batch = require('kafkajs/src/consumer/batch');
const decodeBatch: (decoder: unknown) => Promise<{ records: KafkajsRecord[] }> =
  require('kafkajs/src/protocol/recordBatch/v0/decoder');

interface KafkajsRecord {
  offset: string;
  timestamp: string;
  key: Buffer | null;
  value: Buffer | null;
  headers: object;
  isControlRecord: boolean;
  batchContext: { producerId: string; inTransaction: boolean };
}

interface RecordFields {
  timeDelta: number;
  gap: number;
  key: Uint8Array | null;
  value: Uint8Array | null;
  headers: [string, Uint8Array | null][];
}

interface BatchFields {
  firstOffset: number;
  firstTime: number;
  maxTime: number;
  producerId: number;
  attributes: { logAppend: boolean; transactional: boolean; control: boolean; gzip: boolean };
  records: RecordFields[];
}

const bytes = fc.uint8Array({ maxLength: 300 });
// kafkajs treats names of inherited object properties as repeated headers.
const headerName = fc.string({ unit: 'grapheme' }).filter((name) => !(name in {}));
const record: fc.Arbitrary<RecordFields> = fc.record({
  timeDelta: fc.integer({ min: -(2 ** 45), max: 2 ** 45 }),
  gap: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 10_000_000 })),
  key: fc.option(bytes),
  value: fc.option(bytes),
  headers: fc.array(fc.tuple(fc.oneof(fc.constantFrom('a', 'b'), headerName), fc.option(bytes)), { maxLength: 4 }),
});
const batch: fc.Arbitrary<BatchFields> = fc.record({
  firstOffset: fc.integer({ min: 0, max: 2 ** 50 }),
  firstTime: fc.integer({ min: -1, max: 2 ** 45 }),
  maxTime: fc.integer({ min: -1, max: 2 ** 45 }),
  producerId: fc.integer({ min: -1, max: 2 ** 50 }),
  attributes: fc.record({
    logAppend: fc.boolean(),
    transactional: fc.boolean(),
    control: fc.boolean(),
    gzip: fc.boolean(),
  }),
  records: fc.array(record, { maxLength: 40 }),
});

const toBuffer = (value: Uint8Array | null) => value && Buffer.from(value);

function toRecordBytes({ timeDelta, key, value, headers }: RecordFields, offsetDelta: number): Buffer {
  const body = new Encoder().writeInt8(0).writeVarLong(timeDelta).writeVarInt(offsetDelta);
  body.writeVarIntBytes(toBuffer(key)).writeVarIntBytes(toBuffer(value)).writeVarInt(headers.length);
  for (const [name, each] of headers) body.writeVarIntString(name).writeVarIntBytes(toBuffer(each));
  return new Encoder().writeVarInt(body.size()).writeEncoder(body).buffer;
}

/** Encodes a batch as brokers send it, with markers, gaps and log-append times, which kafkajs cannot encode. */
function toBatchBytes({ attributes, records, ...header }: BatchFields): Buffer {
  let delta = -1;
  const written = records.map((each) => {
    delta += 1 + each.gap;
    return toRecordBytes(each, delta);
  });
  const plain = Buffer.concat(written);
  const { gzip, logAppend, transactional, control } = attributes;
  const bits = (gzip ? 1 : 0) | (logAppend ? 8 : 0) | (transactional ? 16 : 0) | (control ? 32 : 0);
  const body = new Encoder().writeInt32(0).writeInt8(2).writeInt32(0).writeInt16(bits).writeInt32(Math.max(0, delta));
  body.writeInt64(header.firstTime).writeInt64(header.maxTime).writeInt64(header.producerId);
  body.writeInt16(0).writeInt32(0).writeInt32(records.length);
  body.writeBuffer(gzip ? gzipSync(plain) : plain);
  return new Encoder().writeInt64(header.firstOffset).writeInt32(body.size()).writeEncoder(body).buffer;
}

async function readAsKafkajs(batches: readonly Buffer[]): Promise<FetchedRecord[]> {
  const decoded = await Promise.all(batches.map((each) => decodeBatch(new Decoder(each))));
  return decoded
    .flatMap(({ records }) => records)
    .map(({ offset, timestamp, key, value, headers, isControlRecord, batchContext }) => ({
      offset: Number(offset),
      timestamp: Number(timestamp),
      key,
      value,
      headers: headers as FetchedRecord['headers'],
      isControlRecord,
      batchContext: { producerId: batchContext.producerId, inTransaction: batchContext.inTransaction },
    }));
}

function toResponse(recordSet: Buffer): Buffer {
  const partition = new Encoder().writeInt32(3).writeInt16(0).writeInt64(99).writeInt64(99).writeInt64(0);
  partition.writeInt32(0).writeInt32(-1).writeInt32(recordSet.length).writeBuffer(recordSet);
  const topic = new Encoder().writeString('topic').writeInt32(1).writeEncoder(partition);
  return new Encoder().writeInt32(0).writeInt16(0).writeInt32(0).writeInt32(1).writeEncoder(topic).buffer;
}

const example = (overrides: Partial<BatchFields> = {}): BatchFields => ({
  firstOffset: 7,
  firstTime: 1_000,
  maxTime: 2_000,
  producerId: 5,
  attributes: { logAppend: false, transactional: false, control: false, gzip: false },
  records: [0, 1, 2].map((timeDelta) => ({ timeDelta, gap: 0, key: null, value: Buffer.of(1, 2), headers: [] })),
  ...overrides,
});

it('the decoder returns the same records as kafkajs for all batches', async () => {
  const property = fc.asyncProperty(fc.array(batch, { maxLength: 4 }), async (drawn) => {
    const batches = drawn.map(toBatchBytes);
    expect(await readRecords(Buffer.concat(batches))).toEqual(await readAsKafkajs(batches));
  });
  await fc.assert(property, { numRuns: 100 });
});

it('the decoder returns all complete batches of a truncated response', async () => {
  const batches = [example(), example({ firstOffset: 20 })].map(toBatchBytes);
  const all = Buffer.concat(batches);
  for (let end = 0; end <= all.length; end++) {
    const offsets = (await readRecords(all.subarray(0, end))).map(({ offset }) => offset);
    const expected = end === all.length ? [7, 8, 9, 20, 21, 22] : end >= batches[0]!.length ? [7, 8, 9] : [];
    expect(offsets).toEqual(expected);
  }
});

it('the decoder returns the base offset, leader epoch and checksum of every batch', async () => {
  const marker = example({ firstOffset: 10, attributes: { ...example().attributes, control: true } });
  const batches = [example(), marker].map(toBatchBytes);
  for (const [at, each] of batches.entries()) {
    each.writeInt32BE(4 + at, 12);
    each.writeUInt32BE(0xdeadbeef + at, 17);
  }
  expect((await readRecords(Buffer.concat(batches))).batches).toEqual([
    { base: 7, epoch: 4, crc: 0xdeadbeef },
    { base: 10, epoch: 5, crc: 0xdeadbef0 },
  ]);
});

it('the decoder rejects a complete but invalid batch and reads nothing outside the batch', async () => {
  const valid = toBatchBytes(example());
  const property = fc.asyncProperty(fc.nat(valid.length - 62), fc.nat(255), async (position, byte) => {
    const corrupted = Buffer.from(valid);
    corrupted[61 + position] = byte;
    try {
      for (const { value } of await readRecords(corrupted)) expect(value?.length ?? 0).toBeLessThan(valid.length);
    } catch (error) {
      expect(error).toBeInstanceOf(RangeError);
    }
  });
  await fc.assert(property);
  const long = Buffer.from(valid);
  long[61] = 126;
  await expect(readRecords(long)).rejects.toThrow(RangeError);
});

it('kafkajs decodes fetch responses using the replacement decoder', async () => {
  // Another test file may have loaded kafkajs before the decoder was replaced.
  for (const path of Object.keys(require.cache)) if (path.endsWith('response.js')) delete require.cache[path];
  const { decode } = require('kafkajs/src/protocol/requests/fetch/v11/response');
  const { responses } = await decode(toResponse(toBatchBytes(example())));
  const [partition] = responses[0].partitions;
  expect(partition).toMatchObject({ partition: 3, highWatermark: '99' });
  expect(partition.messages.map(({ offset }: FetchedRecord) => offset)).toEqual([7, 8, 9]);
  const empty = await decode(toResponse(Buffer.alloc(0)));
  expect(empty.responses[0].partitions[0].messages).toEqual([]);
});

it('kafkajs computes the same offsets and lag with the replacement decoder as with the original decoder', async () => {
  const aborted = { ...example().attributes, transactional: true };
  const marker = example({
    firstOffset: 10,
    attributes: { ...aborted, control: true },
    records: [{ timeDelta: 0, gap: 0, key: Buffer.of(0, 0, 0, 0), value: Buffer.alloc(6), headers: [] }],
  });
  const batches = [example({ attributes: aborted }), marker, example({ firstOffset: 11 })].map(toBatchBytes);
  const originals = await Promise.all(batches.map((each) => decodeBatch(new Decoder(each))));
  const decoded = await readRecords(Buffer.concat(batches));
  const original = originals.flatMap(({ records }) => records);
  for (const fetched of ['0', '7', '8', '9', '10', '11', '12', '13', '14']) {
    for (const abortedTransactions of [[], [{ producerId: '5', firstOffset: '7' }]]) {
      const open = (messages: unknown) =>
        new Batch('topic', fetched, { partition: 0, highWatermark: '20', abortedTransactions, messages });
      const [replacement, kafkajs] = [open(decoded), open(original)];
      const offsets = (messages: { offset: unknown }[]) => messages.map(({ offset }) => Number(offset));
      expect(offsets(replacement.messages)).toEqual(offsets(kafkajs.messages));
      for (const method of ['firstOffset', 'lastOffset', 'offsetLag', 'offsetLagLow'])
        expect(replacement[method]() === null ? null : String(replacement[method]())).toBe(kafkajs[method]());
      for (const method of ['isEmpty', 'isEmptyDueToFiltering', 'isEmptyDueToLogCompactedMessages'])
        expect(replacement[method]()).toBe(kafkajs[method]());
    }
  }
});
