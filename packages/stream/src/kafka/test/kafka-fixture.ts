import { randomBytes } from 'node:crypto';
import { Admin, type Connection, kGetConnection, offsetCommitV8 } from '@platformatic/kafka';
import { patchKafkaTimer } from '@playline/infra/kafka';
import { testStores, until } from '@playline/testkit';
import { Kafka, type Admin as KafkajsAdmin, logLevel } from 'kafkajs';
import { afterAll } from 'vitest';
import type { StreamRecord } from '../../ports.ts';
import { readTopic } from '../log/open-log-reader.ts';
import { openProducer } from '../producer/open-producer.ts';

process.env.KAFKAJS_NO_PARTITIONER_WARNING = '1';

export interface KafkaFixture {
  brokers: string[];
  createTopic(options: { partitions: number; recordBytesMax?: number; logAppendTime?: boolean }): Promise<string>;
  /** Reads all records from the start of the topic to its current end. */
  read(topic: string): Promise<StreamRecord[]>;
  committed(groupId: string, topic: string): Promise<{ partition: number; offset: number; metadata: string | null }[]>;
  addPartitions(topic: string, count: number): Promise<void>;
  /** Deletes a topic with one partition and recreates it without records. */
  recreateTopic(topic: string): Promise<void>;
  removeTopic(topic: string): Promise<void>;
  /** Deletes all records before an offset in a topic's first partition, like retention. */
  expire(topic: string, offset: number): Promise<void>;
  /** Commits an offset for a group without members. */
  commit(groupId: string, at: { topic: string; offset: number; metadata: string }): Promise<void>;
  close(): Promise<void>;
}

async function removeTopic(admin: KafkajsAdmin, topic: string): Promise<void> {
  await admin.deleteTopics({ topics: [topic] });
  await until(`${topic} is deleted`, async () => !(await admin.listTopics()).includes(topic));
}

async function recreateTopic(kafka: Kafka, topic: string): Promise<void> {
  const admin = kafka.admin();
  await admin.connect();
  await removeTopic(admin, topic);
  await until(`${topic} is recreated`, async () => {
    await admin.createTopics({ topics: [{ topic, numPartitions: 1 }], waitForLeaders: false }).catch(() => {});
    const metadata = await admin.fetchTopicMetadata({ topics: [topic] });
    return metadata.topics[0]!.partitions.every(({ leader }) => leader >= 0);
  });
  await admin.disconnect();
}

async function commit(
  brokers: string[],
  { groupId, topic, offset, metadata }: { groupId: string; topic: string; offset: number; metadata: string },
): Promise<void> {
  const client = new Admin({ clientId: 'test', bootstrapBrokers: brokers });
  try {
    const [coordinator] = await client.findCoordinator({ keyType: 0, keys: [groupId] });
    const connection = await new Promise<Connection>((resolve, reject) => {
      client[kGetConnection](coordinator!, (error, opened) => (error ? reject(error) : resolve(opened!)));
    });
    const at = { partitionIndex: 0, committedOffset: BigInt(offset), committedLeaderEpoch: -1 };
    const partitions = [{ ...at, committedMetadata: metadata }];
    await offsetCommitV8.api.async(connection, groupId, -1, '', null, [{ name: topic, partitions }]);
  } finally {
    await client.close();
  }
}

/** Creates topics on the shared broker, and deletes them at the end. */
export async function openKafkaFixture(): Promise<KafkaFixture> {
  patchKafkaTimer();
  const brokers = testStores().kafka;
  const kafka = new Kafka({ brokers, clientId: 'test', logLevel: logLevel.NOTHING });
  const admin = kafka.admin();
  await admin.connect();
  const prefix = `test-${randomBytes(4).toString('hex')}`;
  const topics: string[] = [];
  const createTopic: KafkaFixture['createTopic'] = async ({ partitions, recordBytesMax, logAppendTime = false }) => {
    const topic = `${prefix}-${topics.length}`;
    topics.push(topic);
    const configEntries = [
      ...(recordBytesMax === undefined ? [] : [{ name: 'max.message.bytes', value: String(recordBytesMax) }]),
      ...(logAppendTime ? [{ name: 'message.timestamp.type', value: 'LogAppendTime' }] : []),
    ];
    const dead = { topic: `${topic}.dead`, numPartitions: 1 };
    const created = [{ topic, numPartitions: partitions, configEntries }, dead];
    await admin.createTopics({ topics: created, waitForLeaders: false });
    // Retried, because the request fails until every broker knows the new topic.
    await until(`${topic} has leaders`, async () => {
      const metadata = await admin.fetchTopicMetadata({ topics: created.map((each) => each.topic) });
      return metadata.topics.every((each) => each.partitions.every(({ leader }) => leader >= 0));
    });
    return topic;
  };
  return {
    brokers,
    createTopic,
    read: (topic) => readTopic({ brokers, topic }),
    committed: async (groupId, topic) => {
      const [found] = await admin.fetchOffsets({ groupId, topics: [topic] });
      return found!.partitions.map(({ partition, offset, metadata }) => ({
        partition,
        offset: Number(offset),
        metadata,
      }));
    },
    addPartitions: async (topic, count) => void (await admin.createPartitions({ topicPartitions: [{ topic, count }] })),
    expire: (topic, offset) =>
      admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: String(offset) }] }),
    recreateTopic: (topic) => recreateTopic(kafka, topic),
    removeTopic: (topic) => removeTopic(admin, topic),
    commit: (groupId, at) => commit(brokers, { groupId, ...at }),
    close: async () => {
      await admin.deleteTopics({ topics: topics.flatMap((topic) => [topic, `${topic}.dead`]) }).catch(() => {});
      await admin.disconnect();
    },
  };
}

export async function useKafka() {
  const fixture = await openKafkaFixture();
  const producer = await openProducer({ brokers: fixture.brokers, clientId: 'test' });
  afterAll(async () => {
    await producer.close();
    await fixture.close();
  });
  return { fixture, producer };
}
