import { randomBytes } from 'node:crypto';
import { testStores, until } from '@playline/testkit';
import { Kafka, logLevel } from 'kafkajs';
import type { StreamRecord } from '../../ports.ts';
import { readTopic } from '../read-topic.ts';

process.env.KAFKAJS_NO_PARTITIONER_WARNING = '1';

export interface KafkaFixture {
  brokers: string[];
  createTopic(options: { partitions: number; recordBytesMax?: number; logAppendTime?: boolean }): Promise<string>;
  /** Everything from the start of the topic to its present end. */
  read(topic: string): Promise<StreamRecord[]>;
  /** Committed offsets of a group by partition, with their metadata. */
  committed(groupId: string, topic: string): Promise<{ partition: number; offset: number; metadata: string | null }[]>;
  close(): Promise<void>;
}

/** Topics of their own on the shared broker; all of them are deleted at the end. */
export async function openKafkaFixture(): Promise<KafkaFixture> {
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
    const asked = [{ topic, numPartitions: partitions, configEntries }, dead];
    await admin.createTopics({ topics: asked, waitForLeaders: false });
    // A broker under load knows a new topic a moment after it was made; until then the question itself fails.
    await until(`leaders of ${topic}`, async () => {
      const metadata = await admin.fetchTopicMetadata({ topics: asked.map((each) => each.topic) });
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
    close: async () => {
      await admin.deleteTopics({ topics: topics.flatMap((topic) => [topic, `${topic}.dead`]) }).catch(() => {});
      await admin.disconnect();
    },
  };
}
