import { createRequire } from 'node:module';
import type { Cluster } from 'kafkajs';
import { isAbortMarker } from '../protocol.ts';
import type { FetchedRecord } from './record-decoding.ts';
import {
  decodeFetch,
  encodeFetch,
  encodeMetadata,
  FETCH,
  type FetchRequest,
  type FetchResponse,
  METADATA,
  readTopicId,
} from './topic-id-wire.ts';

/**
 * A topic that is deleted and recreated has the same name, offsets and first leader epoch; only its id differs. kafkajs
 * 2.2.4 fetches by name, so a member that did not fetch meanwhile would continue in the new log as if it were the old
 * one. Here each fetch names the topic ids that were examined (version 13 of Fetch, KIP-516), and a broker with another
 * topic of that name refuses it. So the check has no gap in time and nothing needs to be compared.
 *
 * Brokers before 3.1 do not support that version, and are asked by name.
 */

const require = createRequire(import.meta.url);

/**
 * Shuffled as kafkajs does, because brokers fill an answer in the order of the request: so every partition gets its
 * share.
 */
const shuffle: <T>(items: readonly T[]) => T[] = require('kafkajs/src/utils/shuffle');
/** Throws kafkajs's own errors for the broker's error codes. */
const { parse } = require('kafkajs/src/protocol/requests/fetch/v11/response') as {
  parse(answer: FetchResponse): Promise<FetchResponse>;
};

/** Members of kafkajs's broker that its types lack. */
interface Broker {
  readonly versions: Readonly<Record<number, { maxVersion: number }>> | null;
  readonly connectionPool: {
    send(protocol: {
      request: { apiKey: number; apiVersion: number; apiName: string; encode(): Promise<unknown> };
      response: { decode(payload: Buffer): Promise<unknown>; parse(answer: unknown): Promise<unknown> };
    }): Promise<unknown>;
  };
  fetch(request: FetchRequest): Promise<FetchResponse>;
  disconnect(): Promise<void>;
}

interface Brokers {
  findBroker(at: { nodeId: string }): Promise<Broker>;
}

/** The topic ids with which a consumer's partitions were examined. */
export interface TopicIds {
  /**
   * The id of the topic that has this name now; null when the broker reports no ids.
   * @throws Error while there is no such topic
   */
  ask(topic: string, broker: unknown): Promise<string | null>;
  /** From now on this partition is fetched from the topic with this id only. */
  pin(at: { topic: string; partition: number }, topicId: string | null): void;
}

const knows = (broker: Broker, { key, version }: { key: number; version: number }) =>
  (broker.versions?.[key]?.maxVersion ?? 0) >= version;

/** Sends a request as kafkajs's broker does. */
async function send<T>(broker: Broker, protocol: Parameters<Broker['connectionPool']['send']>[0]): Promise<T> {
  try {
    return (await broker.connectionPool.send(protocol)) as T;
  } catch (fault) {
    if ((fault as Error).name === 'KafkaJSConnectionClosedError') await broker.disconnect();
    throw fault;
  }
}

async function askTopicId(broker: Broker, topic: string): Promise<string | null> {
  if (!knows(broker, METADATA)) return null;
  return await send(broker, {
    request: {
      apiKey: METADATA.key,
      apiVersion: METADATA.version,
      apiName: 'Metadata',
      encode: async () => encodeMetadata(topic),
    },
    response: { decode: async (payload) => readTopicId(payload), parse: async (topicId) => topicId },
  });
}

async function fetchByIds(broker: Broker, request: FetchRequest): Promise<FetchResponse> {
  return await send(broker, {
    request: {
      apiKey: FETCH.key,
      apiVersion: FETCH.version,
      apiName: 'Fetch',
      encode: async () => encodeFetch(request),
    },
    response: {
      decode: async (payload) => await decodeFetch(payload, request),
      parse: async (answer) => await parse(answer as FetchResponse),
    },
  });
}

const changedClusters = new WeakMap<object, TopicIds>();

/** Makes every fetch of a cluster name topics by id: the pinned id, or the present one. */
export function fetchByTopicId(cluster: Cluster): TopicIds {
  const topicIds = changedClusters.get(cluster) ?? changeCluster(cluster);
  changedClusters.set(cluster, topicIds);
  return topicIds;
}

function changeCluster(cluster: Cluster): TopicIds {
  const brokers = cluster as unknown as Brokers;
  const pinned = new Map<string, string>();
  const changed = new WeakSet<Broker>();
  const findBroker = brokers.findBroker.bind(brokers);

  const change = (broker: Broker) => {
    changed.add(broker);
    const fetchByName = broker.fetch.bind(broker);
    const fetch = async (request: FetchRequest) => {
      const asked = request.topics.flatMap(({ topic, partitions }) =>
        partitions.map((each) => ({
          topic,
          partitions: [{ ...each, topicId: each.topicId ?? pinned.get(`${topic}/${each.partition}`) }],
        })),
      );
      const isKnown = asked.every(({ partitions }) => partitions[0]!.topicId !== undefined);
      if (!isKnown || !knows(broker, FETCH)) return await fetchByName(request);
      return await fetchByIds(broker, { ...request, topics: shuffle(asked) });
    };
    broker.fetch = async (request) => {
      const answer = await fetch(request);
      for (const { partitions } of answer.responses) for (const each of partitions) leaveOutAborted(each);
      return answer;
    };
  };

  brokers.findBroker = async (at) => {
    const broker = await findBroker(at);
    if (!changed.has(broker)) change(broker);
    return broker;
  };
  return {
    ask: (topic, broker) => askTopicId(broker as Broker, topic),
    pin({ topic, partition }, topicId) {
      if (topicId === null) pinned.delete(`${topic}/${partition}`);
      else pinned.set(`${topic}/${partition}`, topicId);
    },
  };
}

/**
 * Leaves records of aborted transactions out of a fetched answer. kafkajs 2.2.4 gets this wrong when such transactions
 * overlap. It takes the list of them as ordered by first offset, but brokers order it by end, and it moves to the next
 * entry record by record. Then it delivers records of aborted transactions, and may drop records of the producer's next
 * transaction.
 */

/** The members of a fetched partition that are used here. */
export interface FetchedTransactions {
  /** Aborted transactions with records in this answer, in any order. */
  abortedTransactions: { producerId: string; firstOffset: string }[] | null;
  /** Records of format 2; older formats have no transactions. */
  readonly messages: readonly unknown[];
}

/**
 * Makes aborted records look like markers, which kafkajs skips but counts as read. Empties the list of aborted
 * transactions, so that kafkajs has nothing to get wrong.
 */
export function leaveOutAborted(fetched: FetchedTransactions): void {
  const begun = (fetched.abortedTransactions ?? []).toSorted((a, b) => Number(a.firstOffset) - Number(b.firstOffset));
  fetched.abortedTransactions = [];
  if (begun.length === 0) return;
  const undone = new Set<string>();
  let next = 0;
  for (const record of fetched.messages as (FetchedRecord & { isControlRecord: boolean })[]) {
    while (next < begun.length && Number(begun[next]!.firstOffset) <= Number(record.offset))
      undone.add(begun[next++]!.producerId);
    const { producerId, inTransaction } = record.batchContext;
    if (!record.isControlRecord) record.isControlRecord = inTransaction && undone.has(producerId);
    else if (isAbortMarker(record.key)) undone.delete(producerId);
  }
}
