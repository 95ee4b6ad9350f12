import { createRequire } from 'node:module';
import { fetchV13, metadataV12 } from '@platformatic/kafka';
import { describe, expect, it } from 'vitest';
import { TopicGone } from '../../partitions/log-partition.ts';
import { decodeFetch, encodeFetch, encodeMetadata, type FetchRequest, readTopicId } from './topic-id-wire.ts';

const require = createRequire(import.meta.url);
const Encoder = require('kafkajs/src/protocol/encoder');

const ONE = '00112233445566778899aabbccddeeff';
const OTHER = 'ffeeddccbbaa99887766554433221100';
const toUuid = (id: string) => id.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
const bytesOf = (encoder: unknown) => Buffer.from((encoder as { buffer: Buffer }).buffer);
/** The tags that end a message's head. */
const HEAD_TAGS = Buffer.of(0);

const ask = (partition: number, topicId: string, fetchOffset = '7') => ({
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
    { topic: 'one', partitions: [ask(0, ONE), ask(3, ONE, '9007199254740993')] },
    { topic: 'other', partitions: [ask(1, OTHER)] },
  ],
};

describe('a question that names topics by their ids', () => {
  it('is written as another client writes it', () => {
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
    expect(bytesOf(encodeFetch(request))).toEqual(Buffer.concat([HEAD_TAGS, fetch.buffer]));
    const metadata = metadataV12.createRequest(['one'], false, false);
    expect(bytesOf(encodeMetadata('one'))).toEqual(Buffer.concat([HEAD_TAGS, metadata.buffer]));
  });
});

/** Tags of later versions of a broker, which are to be passed over. */
const tags = () => Buffer.of(1, 5, 3, 9, 9, 9);

/** A batch without records, as compaction leaves one: 61 bytes. */
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
  // One transaction that was aborted.
  encoder
    .writeUVarInt(1 + 1)
    .writeInt64(5)
    .writeInt64(6)
    .writeUVarInt(0);
  encoder.writeInt32(-1).writeUVarInt(records === null ? 0 : records.length + 1);
  if (records !== null) encoder.writeBuffer(records);
  return encoder.writeBuffer(tags());
}

function toAnswer(topics: readonly [string, readonly Parameters<typeof toPartition>[0][]][]): Buffer {
  const encoder = new Encoder().writeBuffer(tags()).writeInt32(0).writeInt16(0).writeInt32(0);
  encoder.writeUVarInt(topics.length + 1);
  for (const [id, partitions] of topics) {
    encoder.writeBuffer(Buffer.from(id, 'hex')).writeUVarInt(partitions.length + 1);
    for (const each of partitions) encoder.writeEncoder(toPartition(each));
    encoder.writeBuffer(tags());
  }
  return encoder.writeBuffer(tags()).buffer;
}

describe('an answer that names topics by their ids', () => {
  it('is read with the names that were asked for, its batches, and what else kafkajs uses of it', async () => {
    const answer = toAnswer([
      [OTHER, [{ partition: 1, records: null }]],
      [
        ONE,
        [
          { partition: 3, records: Buffer.concat([emptyBatch(20), emptyBatch(30)]) },
          { partition: 0, records: Buffer.alloc(0) },
        ],
      ],
    ]);
    const { responses } = await decodeFetch(answer, request);
    const told = responses.map(({ topicName, partitions }) => [
      topicName,
      partitions.map(({ partition }) => partition),
    ]);
    expect(told).toEqual([
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

  it.each([100, 103])('is a log that is gone when a broker has another topic (code %d)', async (code) => {
    const answer = toAnswer([[ONE, [{ partition: 3, code, records: null }]]]);
    const fault = await decodeFetch(answer, request).catch((error: unknown) => error);
    expect(fault).toBeInstanceOf(TopicGone);
    expect(fault).toMatchObject({ topic: 'one', partition: 3 });
  });
});

describe('the topic that bears a name', () => {
  const toTopic = (code: number, id: string) => {
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
  };

  it('is reported by its id, as null when the broker reports no ids, and as a fault when there is no such topic', () => {
    expect(readTopicId(toTopic(0, ONE))).toBe(ONE);
    expect(readTopicId(toTopic(0, '0'.repeat(32)))).toBeNull();
    expect(() => readTopicId(toTopic(3, '0'.repeat(32)))).toThrow('code 3');
  });
});
