/** The two messages of Kafka's protocol that identify topics by id, in versions that kafkajs 2.2.4 lacks. */
import { createRequire } from 'node:module';
import { LogGone } from '../../partitions/log-partition.ts';
import { NO_EPOCH, NO_REPLICA, NO_SESSION } from '../protocol.ts';
import { readFetched } from './record-decoding.ts';

const require = createRequire(import.meta.url);

export const METADATA = { key: 3, version: 12 };
export const FETCH = { key: 1, version: 13 };

const NO_ID = '0'.repeat(32);
const NO_OFFSET = -1;
/** The broker has no topic with that id, or its topic of that name has another id. */
const GONE = new Set([100, 103]);

export interface AskedPartition {
  readonly partition: number;
  readonly fetchOffset: string;
  readonly maxBytes: number;
  /** 32 hexadecimal digits. */
  readonly topicId?: string | undefined;
}

/** As a broker of kafkajs is asked. */
export interface FetchRequest {
  readonly maxWaitTime: number;
  readonly minBytes: number;
  readonly maxBytes: number;
  readonly isolationLevel: number;
  readonly topics: readonly { readonly topic: string; readonly partitions: readonly AskedPartition[] }[];
  readonly rackId?: string;
}

interface FetchedPartition {
  readonly partition: number;
  readonly errorCode: number;
  readonly highWatermark: string;
  readonly lastStableOffset: string;
  readonly lastStartOffset: string;
  readonly abortedTransactions: { producerId: string; firstOffset: string }[];
  readonly preferredReadReplica: number;
  readonly messages: readonly unknown[];
}

/** As a broker of kafkajs answers. */
export interface FetchResponse {
  readonly throttleTime: number;
  readonly clientSideThrottleTime: number;
  readonly errorCode: number;
  readonly sessionId: number;
  readonly responses: { topicName: string; partitions: FetchedPartition[] }[];
}

/** What is used of kafkajs's encoder. */
interface Encoder {
  writeInt8(value: number): Encoder;
  writeInt32(value: number): Encoder;
  writeInt64(value: number | string): Encoder;
  writeUVarInt(value: number): Encoder;
  writeUVarIntString(value: string): Encoder;
  writeBuffer(value: Buffer): Encoder;
}

/** What is used of kafkajs's decoder. */
interface Decoder {
  offset: number;
  readonly buffer: Buffer;
  readInt8(): number;
  readInt16(): number;
  readInt32(): number;
  readInt64(): { toString(): string };
  readUVarInt(): number;
  readUVarIntString(): string | null;
}

const WireEncoder: new () => Encoder = require('kafkajs/src/protocol/encoder');
const WireDecoder: new (bytes: Buffer) => Decoder = require('kafkajs/src/protocol/decoder');

/** Bytes of an id. */
const ID_BYTES = 16;
const NO_TAGS = 0;

/**
 * In these versions the header of a message ends with tags, which kafkajs does not write; so they are written first
 * here.
 */
const begin = () => new WireEncoder().writeUVarInt(NO_TAGS);

/** Asks about one topic, without creating it. */
export function encodeMetadata(topic: string): unknown {
  return begin()
    .writeUVarInt(1 + 1)
    .writeBuffer(Buffer.from(NO_ID, 'hex'))
    .writeUVarIntString(topic)
    .writeUVarInt(NO_TAGS)
    .writeInt8(0)
    .writeInt8(0)
    .writeUVarInt(NO_TAGS);
}

/** Tags are skipped: none of them is needed. */
function skipTags(decoder: Decoder): void {
  for (let left = decoder.readUVarInt(); left > 0; left--) {
    decoder.readUVarInt();
    const length = decoder.readUVarInt();
    decoder.offset += length;
  }
}

/** The wire has length + 1, and 0 for null. */
const readLength = (decoder: Decoder) => Math.max(0, decoder.readUVarInt() - 1);

function readId(decoder: Decoder): string {
  const start = decoder.offset;
  decoder.offset += ID_BYTES;
  return decoder.buffer.toString('hex', start, start + ID_BYTES);
}

/**
 * The id of the one topic in an answer; null when the broker reports no ids.
 * @throws Error when there is no such topic
 */
export function readTopicId(payload: Buffer): string | null {
  const decoder = new WireDecoder(payload);
  skipTags(decoder);
  decoder.readInt32();
  for (let brokers = readLength(decoder); brokers > 0; brokers--) {
    decoder.readInt32();
    decoder.readUVarIntString();
    decoder.readInt32();
    decoder.readUVarIntString();
    skipTags(decoder);
  }
  decoder.readUVarIntString();
  decoder.readInt32();
  if (readLength(decoder) !== 1) throw new Error('a broker tells of another number of topics than it was asked for');
  const code = decoder.readInt16();
  const topic = decoder.readUVarIntString();
  const topicId = readId(decoder);
  if (code !== 0) throw new Error(`a broker does not tell which topic bears the name ${topic}: code ${code}`);
  return topicId === NO_ID ? null : topicId;
}

export function encodeFetch(request: FetchRequest): unknown {
  const encoder = begin()
    .writeInt32(NO_REPLICA)
    .writeInt32(request.maxWaitTime)
    .writeInt32(request.minBytes)
    .writeInt32(request.maxBytes)
    .writeInt8(request.isolationLevel)
    .writeInt32(NO_SESSION.id)
    .writeInt32(NO_SESSION.epoch)
    .writeUVarInt(request.topics.length + 1);
  for (const { partitions } of request.topics) {
    encoder.writeBuffer(Buffer.from(partitions[0]?.topicId ?? NO_ID, 'hex')).writeUVarInt(partitions.length + 1);
    for (const { partition, fetchOffset, maxBytes } of partitions)
      encoder
        .writeInt32(partition)
        .writeInt32(NO_EPOCH)
        .writeInt64(fetchOffset)
        .writeInt32(NO_EPOCH)
        .writeInt64(NO_OFFSET)
        .writeInt32(maxBytes)
        .writeUVarInt(NO_TAGS);
    encoder.writeUVarInt(NO_TAGS);
  }
  // No topics to forget: that is only used with fetch sessions.
  return encoder
    .writeUVarInt(0 + 1)
    .writeUVarIntString(request.rackId ?? '')
    .writeUVarInt(NO_TAGS);
}

async function readPartition(decoder: Decoder): Promise<FetchedPartition> {
  const head = {
    partition: decoder.readInt32(),
    errorCode: decoder.readInt16(),
    highWatermark: decoder.readInt64().toString(),
    lastStableOffset: decoder.readInt64().toString(),
    lastStartOffset: decoder.readInt64().toString(),
  };
  const abortedTransactions = Array.from({ length: readLength(decoder) }, () => {
    const aborted = { producerId: decoder.readInt64().toString(), firstOffset: decoder.readInt64().toString() };
    skipTags(decoder);
    return aborted;
  });
  const preferredReadReplica = decoder.readInt32();
  const length = readLength(decoder);
  const start = decoder.offset;
  decoder.offset += length;
  const messages = await readFetched(decoder.buffer.subarray(start, start + length));
  skipTags(decoder);
  return { ...head, abortedTransactions, preferredReadReplica, messages };
}

/**
 * Reads an answer to a fetch and puts the names of the topics back in.
 * @throws LogGone when a requested topic is gone
 */
export async function decodeFetch(payload: Buffer, { topics }: FetchRequest): Promise<FetchResponse> {
  const nameOf = new Map(topics.map(({ topic, partitions }) => [partitions[0]?.topicId, topic]));
  const decoder = new WireDecoder(payload);
  skipTags(decoder);
  const clientSideThrottleTime = decoder.readInt32();
  const [errorCode, sessionId] = [decoder.readInt16(), decoder.readInt32()];
  const responses: FetchResponse['responses'] = [];
  for (let left = readLength(decoder); left > 0; left--) {
    const topicName = nameOf.get(readId(decoder)) ?? '';
    const partitions: FetchedPartition[] = [];
    for (let count = readLength(decoder); count > 0; count--) partitions.push(await readPartition(decoder));
    skipTags(decoder);
    const gone = partitions.find((each) => GONE.has(each.errorCode));
    if (gone !== undefined) throw new LogGone({ topic: topicName, partition: gone.partition });
    responses.push({ topicName, partitions });
  }
  // `throttleTime` is 0 so that kafkajs throttles once, by the other number.
  return { throttleTime: 0, clientSideThrottleTime, errorCode, sessionId, responses };
}
