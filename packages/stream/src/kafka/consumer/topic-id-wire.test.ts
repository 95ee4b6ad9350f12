import { createRequire } from 'node:module';
import { fetchV13, metadataV12 } from '@platformatic/kafka';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { TopicDeleted } from '../../partitions/log-partition.ts';
import type { FetchedRecord } from './record-decoding.ts';
import {
  decodeFetch,
  encodeFetch,
  encodeMetadata,
  type FetchedTransactions,
  type FetchRequest,
  hideAborted,
  readTopicId,
} from './topic-id-wire.ts';

const require = createRequire(import.meta.url);
const Encoder = require('kafkajs/src/protocol/encoder');

const FIRST_ID = '00112233445566778899aabbccddeeff';
const SECOND_ID = 'ffeeddccbbaa99887766554433221100';
const toUuid = (id: string) => id.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
const bytesOf = (encoder: unknown) => Buffer.from((encoder as { buffer: Buffer }).buffer);
/** The empty tag section at the end of a message header. */
const HEADER_TAGS = Buffer.of(0);

const partitionOf = (partition: number, topicId: string, fetchOffset = '7') => ({
  partition,
  fetchOffset,
  maxBytes: 1_000,
  topicId,
});
const request: FetchRequest = {
  maxWaitTime: 150,
  minBytes: 1,
  maxBytes: 4_000,
  isolationLevel: 1,
  rackId: 'rack',
  topics: [
    { topic: 'one', partitions: [partitionOf(0, FIRST_ID), partitionOf(3, FIRST_ID, '9007199254740993')] },
    { topic: 'other', partitions: [partitionOf(1, SECOND_ID)] },
  ],
};
it('requests that identify topics by id are encoded exactly as @platformatic/kafka encodes them', () => {
  const topics = request.topics.map(({ partitions }) => ({
    topicId: toUuid(partitions[0]!.topicId!),
    partitions: partitions.map(({ partition, fetchOffset, maxBytes }) => ({
      partition,
      fetchOffset: BigInt(fetchOffset),
      partitionMaxBytes: maxBytes,
      currentLeaderEpoch: -1,
      lastFetchedEpoch: -1,
    })),
  }));
  const fetch = fetchV13.createRequest(150, 1, 4_000, 1, 0, -1, topics, [], 'rack');
  expect(bytesOf(encodeFetch(request))).toEqual(Buffer.concat([HEADER_TAGS, fetch.buffer]));
  const metadata = metadataV12.createRequest(['one'], false, false);
  expect(bytesOf(encodeMetadata('one'))).toEqual(Buffer.concat([HEADER_TAGS, metadata.buffer]));
});

/** Tags from later protocol versions, which the decoder skips. */
const tags = () => Buffer.of(1, 5, 3, 9, 9, 9);

function emptyBatch(base: number): Buffer {
  const batch = Buffer.alloc(61);
  batch.writeBigInt64BE(BigInt(base), 0);
  batch.writeInt32BE(61 - 12, 8);
  batch.writeInt32BE(4, 12);
  batch[16] = 2;
  batch.writeUInt32BE(77, 17);
  return batch;
}

function toPartition({ partition, code = 0, records }: { partition: number; code?: number; records: Buffer | null }) {
  const encoder = new Encoder().writeInt32(partition).writeInt16(code).writeInt64(99).writeInt64(98).writeInt64(1);
  encoder
    .writeUVarInt(1 + 1)
    .writeInt64(5)
    .writeInt64(6)
    .writeUVarInt(0);
  encoder.writeInt32(-1).writeUVarInt(records === null ? 0 : records.length + 1);
  if (records !== null) encoder.writeBuffer(records);
  return encoder.writeBuffer(tags());
}

function toResponse(topics: readonly [string, readonly Parameters<typeof toPartition>[0][]][]): Buffer {
  const encoder = new Encoder().writeBuffer(tags()).writeInt32(0).writeInt16(0).writeInt32(0);
  encoder.writeUVarInt(topics.length + 1);
  for (const [id, partitions] of topics) {
    encoder.writeBuffer(Buffer.from(id, 'hex')).writeUVarInt(partitions.length + 1);
    for (const each of partitions) encoder.writeEncoder(toPartition(each));
    encoder.writeBuffer(tags());
  }
  return encoder.writeBuffer(tags()).buffer;
}

it('a fetch response that identifies topics by id is decoded with the requested topic names', async () => {
  const response = toResponse([
    [SECOND_ID, [{ partition: 1, records: null }]],
    [
      FIRST_ID,
      [
        { partition: 3, records: Buffer.concat([emptyBatch(20), emptyBatch(30)]) },
        { partition: 0, records: Buffer.alloc(0) },
      ],
    ],
  ]);
  const { responses } = await decodeFetch(response, request);
  expect(
    responses.map(({ topicName, partitions }) => [topicName, partitions.map(({ partition }) => partition)]),
  ).toEqual([
    ['other', [1]],
    ['one', [3, 0]],
  ]);
  expect(responses[1]!.partitions[0]).toMatchObject({
    errorCode: 0,
    highWatermark: '99',
    lastStableOffset: '98',
    preferredReadReplica: -1,
    abortedTransactions: [{ producerId: '5', firstOffset: '6' }],
  });
  expect((responses[1]!.partitions[0]!.messages as { batches?: unknown }).batches).toEqual([
    { base: 20, epoch: 4, crc: 77 },
    { base: 30, epoch: 4, crc: 77 },
  ]);
  expect(responses[0]!.partitions[0]!.messages).toEqual([]);
  expect(responses[1]!.partitions[1]!.messages).toEqual([]);
});

it.each([100, 103])('decodeFetch throws TopicDeleted for error code %d', async (code) => {
  const response = toResponse([[FIRST_ID, [{ partition: 3, code, records: null }]]]);
  const fault = await decodeFetch(response, request).catch((error: unknown) => error);
  expect(fault).toBeInstanceOf(TopicDeleted);
  expect(fault).toMatchObject({ topic: 'one', partition: 3 });
});

function toMetadataResponse(code: number, id: string): Buffer {
  const encoder = new Encoder()
    .writeBuffer(tags())
    .writeInt32(0)
    .writeUVarInt(2 + 1);
  for (const rack of ['a rack', null]) {
    encoder.writeInt32(1).writeUVarIntString('host').writeInt32(9_092).writeUVarIntString(rack);
    encoder.writeBuffer(tags());
  }
  encoder
    .writeUVarIntString('cluster')
    .writeInt32(1)
    .writeUVarInt(1 + 1);
  return encoder.writeInt16(code).writeUVarIntString('one').writeBuffer(Buffer.from(id, 'hex')).buffer;
}

it('readTopicId returns the topic id, returns null if there are no ids, and throws for a missing topic', () => {
  expect(readTopicId(toMetadataResponse(0, FIRST_ID))).toBe(FIRST_ID);
  expect(readTopicId(toMetadataResponse(0, '0'.repeat(32)))).toBeNull();
  expect(() => readTopicId(toMetadataResponse(3, '0'.repeat(32)))).toThrow('code 3');
});

const Batch = require('kafkajs/src/consumer/batch');

/** A log entry: a record, or a marker that commits or aborts its producer's transaction. */
interface Entry {
  readonly producer: number;
  readonly kind: 'record' | 'commit' | 'abort';
}

const entry: fc.Arbitrary<Entry> = fc.record({
  producer: fc.nat(2),
  kind: fc.constantFrom<Entry['kind'][]>('record', 'record', 'record', 'commit', 'abort'),
});

const toFetched = ({ producer, kind }: Entry, offset: number): FetchedRecord => ({
  offset,
  timestamp: 0,
  value: null,
  headers: {},
  key: kind === 'record' ? null : Buffer.of(0, 0, 0, kind === 'commit' ? 1 : 0),
  isControlRecord: kind !== 'record',
  batchContext: { producerId: String(producer), inTransaction: true },
});

/** Creates a fetch response that starts at an offset, and the offsets to deliver. All transactions have ended. */
function createLog(entriesBefore: readonly Entry[], from: number) {
  const entries = [...entriesBefore, ...[0, 1, 2].map((producer) => ({ producer, kind: 'abort' as const }))];
  const open = new Map<number, number[]>();
  const committed: number[] = [];
  const aborted: { producerId: string; firstOffset: string; end: number }[] = [];
  for (const [offset, { producer, kind }] of entries.entries()) {
    const openOffsets = open.get(producer) ?? [];
    if (kind === 'record') open.set(producer, [...openOffsets, offset]);
    else open.delete(producer);
    if (kind === 'commit') committed.push(...openOffsets);
    if (kind === 'abort' && openOffsets.length > 0)
      aborted.push({ producerId: String(producer), firstOffset: String(openOffsets[0]), end: offset });
  }
  // Ordered by end offset, like the log's index of aborted transactions.
  const abortedTransactions = aborted.filter(({ end }) => end >= from).map(({ end: _, ...each }) => each);
  const messages = entries.map(toFetched).slice(from);
  const expected = committed.filter((offset) => offset >= from).toSorted((a, b) => a - b);
  return { fetched: { abortedTransactions, messages }, expected };
}

function readOffsets(fetched: FetchedTransactions, from: number): number[] {
  const batch = new Batch('topic', String(from), { partition: 0, highWatermark: '99', ...fetched });
  return batch.messages.map(({ offset }: FetchedRecord) => offset);
}

const logs = fc.tuple(fc.array(entry, { maxLength: 25 }), fc.nat(12));

it('a response delivers all committed and no aborted records when transactions overlap', () => {
  const property = fc.property(logs, ([entries, from]) => {
    const { fetched, expected } = createLog(entries, from);
    hideAborted(fetched);
    expect(readOffsets(fetched, from)).toEqual(expected);
  });
  fc.assert(property, { numRuns: 200 });
});

it('kafkajs without the override delivers wrong records when transactions overlap', () => {
  const property = fc.property(logs, ([entries, from]) => {
    const { fetched, expected } = createLog(entries, from);
    expect(readOffsets(fetched, from)).toEqual(expected);
  });
  expect(() => fc.assert(property, { numRuns: 500 })).toThrow('Property failed');
});

it('aborted records count as read', () => {
  const { fetched } = createLog([{ producer: 0, kind: 'record' }], 0);
  hideAborted(fetched);
  const batch = new Batch('topic', '0', { partition: 0, highWatermark: '99', ...fetched });
  expect(batch.isEmptyDueToFiltering()).toBe(true);
  expect(Number(batch.lastOffset())).toBe(3);
});
