import { createRequire } from 'node:module';
import type { Cluster } from 'kafkajs';
import { TopicDeleted } from '../../partitions/log-partition.ts';
import { isAbortMarker, NO_EPOCH, NO_REPLICA, NO_SESSION } from '../protocol.ts';
import { type FetchedRecord, readFetched } from './record-decoding.ts';

/** Kafka requests that identify topics by ID, in versions that kafkajs 2.2.4 does not support. */

const require = createRequire(import.meta.url);

const METADATA = { key: 3, version: 12 };
const FETCH = { key: 1, version: 13 };

const NO_ID = '0'.repeat(32);
const NO_OFFSET = -1;
/** The broker has no topic with the requested ID, or the topic with this name has another ID. */
const DELETED_TOPIC_CODES = new Set([100, 103]);

interface RequestedPartition {
  readonly partition: number;
  readonly fetchOffset: string;
  readonly maxBytes: number;
  readonly topicId?: string | undefined;
}

export interface FetchRequest {
  readonly maxWaitTime: number;
  readonly minBytes: number;
  readonly maxBytes: number;
  readonly isolationLevel: number;
  readonly topics: readonly { readonly topic: string; readonly partitions: readonly RequestedPartition[] }[];
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

export interface FetchResponse {
  readonly throttleTime: number;
  readonly clientSideThrottleTime: number;
  readonly errorCode: number;
  readonly sessionId: number;
  readonly responses: { topicName: string; partitions: FetchedPartition[] }[];
}

interface Encoder {
  writeInt8(value: number): Encoder;
  writeInt32(value: number): Encoder;
  writeInt64(value: number | string): Encoder;
  writeUVarInt(value: number): Encoder;
  writeUVarIntString(value: string): Encoder;
  writeBuffer(value: Buffer): Encoder;
}

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

const ID_BYTES = 16;
const NO_TAGS = 0;

/** Request headers in these versions end with tags, which kafkajs does not write. */
const begin = () => new WireEncoder().writeUVarInt(NO_TAGS);

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

function skipTags(decoder: Decoder): void {
  for (let remaining = decoder.readUVarInt(); remaining > 0; remaining--) {
    decoder.readUVarInt();
    const length = decoder.readUVarInt();
    decoder.offset += length;
  }
}

/** Reads a length, which is encoded as length + 1. Null, encoded as 0, is read as 0. */
const readLength = (decoder: Decoder) => Math.max(0, decoder.readUVarInt() - 1);

function readId(decoder: Decoder): string {
  const start = decoder.offset;
  decoder.offset += ID_BYTES;
  return decoder.buffer.toString('hex', start, start + ID_BYTES);
}

/**
 * Returns the ID of a response's only topic, or null if the broker reports no IDs.
 * @throws Error if the topic does not exist
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
  if (readLength(decoder) !== 1) throw new Error('The broker returned an unexpected number of topics.');
  const code = decoder.readInt16();
  const topic = decoder.readUVarIntString();
  const topicId = readId(decoder);
  if (code !== 0) throw new Error(`The broker returned no ID for topic ${topic}: error code ${code}`);
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
  return encoder
    .writeUVarInt(0 + 1)
    .writeUVarIntString(request.rackId ?? '')
    .writeUVarInt(NO_TAGS);
}

async function readPartition(decoder: Decoder): Promise<FetchedPartition> {
  const fields = {
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
  return { ...fields, abortedTransactions, preferredReadReplica, messages };
}

/** Decodes a fetch response and restores topic names. @throws TopicDeleted if a requested topic no longer exists */
export async function decodeFetch(payload: Buffer, { topics }: FetchRequest): Promise<FetchResponse> {
  const nameOf = new Map(topics.map(({ topic, partitions }) => [partitions[0]?.topicId, topic]));
  const decoder = new WireDecoder(payload);
  skipTags(decoder);
  const clientSideThrottleTime = decoder.readInt32();
  const [errorCode, sessionId] = [decoder.readInt16(), decoder.readInt32()];
  const responses: FetchResponse['responses'] = [];
  for (let remaining = readLength(decoder); remaining > 0; remaining--) {
    const topicName = nameOf.get(readId(decoder)) ?? '';
    const partitions: FetchedPartition[] = [];
    for (let count = readLength(decoder); count > 0; count--) partitions.push(await readPartition(decoder));
    skipTags(decoder);
    const deleted = partitions.find((each) => DELETED_TOPIC_CODES.has(each.errorCode));
    if (deleted !== undefined) throw new TopicDeleted({ topic: topicName, partition: deleted.partition });
    responses.push({ topicName, partitions });
  }
  // Zero, because kafkajs throttles by `clientSideThrottleTime`.
  return { throttleTime: 0, clientSideThrottleTime, errorCode, sessionId, responses };
}

/** Shuffles partitions, as kafkajs does, because brokers fill responses in request order and could starve the last. */
const shuffle: <T>(items: readonly T[]) => T[] = require('kafkajs/src/utils/shuffle');
/** Throws the kafkajs errors for the broker's error codes. */
const { parse } = require('kafkajs/src/protocol/requests/fetch/v11/response') as {
  parse(response: FetchResponse): Promise<FetchResponse>;
};

/** Members of the kafkajs broker that the kafkajs types omit. */
interface Broker {
  readonly versions: Readonly<Record<number, { maxVersion: number }>> | null;
  readonly connectionPool: {
    send(protocol: {
      request: { apiKey: number; apiVersion: number; apiName: string; encode(): Promise<unknown> };
      response: { decode(payload: Buffer): Promise<unknown>; parse(response: unknown): Promise<unknown> };
    }): Promise<unknown>;
  };
  fetch(request: FetchRequest): Promise<FetchResponse>;
  disconnect(): Promise<void>;
}

const supports = ({ versions }: Broker, { key, version }: typeof FETCH) =>
  (versions?.[key]?.maxVersion ?? 0) >= version;

async function send<T>(broker: Broker, protocol: Parameters<Broker['connectionPool']['send']>[0]): Promise<T> {
  try {
    return (await broker.connectionPool.send(protocol)) as T;
  } catch (fault) {
    if ((fault as Error).name === 'KafkaJSConnectionClosedError') await broker.disconnect();
    throw fault;
  }
}

const toApiName = ({ key, version }: typeof FETCH, apiName: string) => ({ apiKey: key, apiVersion: version, apiName });

async function fetchTopicId(broker: Broker, topic: string): Promise<string | null> {
  if (!supports(broker, METADATA)) return null;
  return await send(broker, {
    request: { ...toApiName(METADATA, 'Metadata'), encode: async () => encodeMetadata(topic) },
    response: { decode: async (payload) => readTopicId(payload), parse: async (topicId) => topicId },
  });
}

async function fetchByIds(broker: Broker, request: FetchRequest): Promise<FetchResponse> {
  return await send(broker, {
    request: { ...toApiName(FETCH, 'Fetch'), encode: async () => encodeFetch(request) },
    response: {
      decode: (payload) => decodeFetch(payload, request),
      parse: (decoded) => parse(decoded as FetchResponse),
    },
  });
}

const patchedClusters = new WeakMap<object, ReturnType<typeof patchCluster>>();

/**
 * Makes all of a cluster's fetches identify topics by ID (Fetch 13, KIP-516). A recreated topic has the same name,
 * offsets and leader epoch, so a fetch by name would continue in the new topic. Brokers before 3.1 require names.
 */
export function fetchByTopicId(cluster: Cluster) {
  const topicIds = patchedClusters.get(cluster) ?? patchCluster(cluster);
  patchedClusters.set(cluster, topicIds);
  return topicIds;
}

/** Patches a cluster once. Stores the topic IDs to which a consumer's partitions are pinned. */
function patchCluster(cluster: Cluster) {
  const brokers = cluster as unknown as { findBroker(at: { nodeId: string }): Promise<Broker> };
  const pinned = new Map<string, string>();
  const patched = new WeakSet<Broker>();
  const findBroker = brokers.findBroker.bind(brokers);

  const patch = (broker: Broker) => {
    patched.add(broker);
    const fetchByName = broker.fetch.bind(broker);
    const fetch = async (request: FetchRequest) => {
      const withId = (topic: string, each: RequestedPartition) => {
        const topicId = each.topicId ?? pinned.get(`${topic}/${each.partition}`);
        return { topic, partitions: [{ ...each, topicId }] };
      };
      const requested = request.topics.flatMap(({ topic, partitions }) =>
        partitions.map((each) => withId(topic, each)),
      );
      const hasAllIds = requested.every(({ partitions }) => partitions[0]!.topicId !== undefined);
      if (!hasAllIds || !supports(broker, FETCH)) return await fetchByName(request);
      return await fetchByIds(broker, { ...request, topics: shuffle(requested) });
    };
    broker.fetch = async (request) => {
      const response = await fetch(request);
      for (const { partitions } of response.responses) for (const each of partitions) hideAborted(each);
      return response;
    };
  };

  brokers.findBroker = async (at) => {
    const broker = await findBroker(at);
    if (!patched.has(broker)) patch(broker);
    return broker;
  };
  return {
    /**
     * Returns a topic's current ID, or null if the broker reports no IDs. @throws Error while the topic does not exist
     */
    fetchId: (topic: string, broker: unknown) => fetchTopicId(broker as Broker, topic),
    /** From now on, fetches the partition only from the topic with this ID. */
    pin({ topic, partition }: { topic: string; partition: number }, topicId: string | null): void {
      if (topicId === null) pinned.delete(`${topic}/${partition}`);
      else pinned.set(`${topic}/${partition}`, topicId);
    },
  };
}

/** Aborted transactions in any order, with records in format 2. Older formats have no transactions. */
export interface FetchedTransactions {
  abortedTransactions: { producerId: string; firstOffset: string }[] | null;
  readonly messages: readonly unknown[];
}

/**
 * Marks aborted records as control records, which kafkajs skips and counts as read. kafkajs 2.2.4 itself delivers
 * records from overlapping aborted transactions, because it expects the list to be ordered by first offset.
 */
export function hideAborted(fetched: FetchedTransactions): void {
  const transactions = (fetched.abortedTransactions ?? []).toSorted(
    (a, b) => Number(a.firstOffset) - Number(b.firstOffset),
  );
  fetched.abortedTransactions = [];
  if (transactions.length === 0) return;
  const aborting = new Set<string>();
  let next = 0;
  for (const record of fetched.messages as (FetchedRecord & { isControlRecord: boolean })[]) {
    while (next < transactions.length && Number(transactions[next]!.firstOffset) <= Number(record.offset))
      aborting.add(transactions[next++]!.producerId);
    const { producerId, inTransaction } = record.batchContext;
    if (!record.isControlRecord) record.isControlRecord = inTransaction && aborting.has(producerId);
    else if (isAbortMarker(record.key)) aborting.delete(producerId);
  }
}
