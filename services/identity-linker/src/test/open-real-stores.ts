import { randomBytes } from 'node:crypto';
import { type IdentityLinkRecord, identityLinkCodec, TOPICS } from '@playline/contracts';
import { applyTopics, dropTopics } from '@playline/infra/kafka';
import type { People } from '@playline/people';
import { openRedisPeople } from '@playline/people/redis';
import { createSchemaRegistry, openProducer, readTopic } from '@playline/stream/kafka';
import { openTestRedis, TEST_PARTITIONS, testRedis, testStores } from '@playline/testkit';
import type { Redis } from 'ioredis';
import { Kafka, logLevel } from 'kafkajs';
import { fromDecision, toOutgoing } from './linking.ts';

/** The topics and schemas of one test in the real stores. */
export interface RealStores {
  readonly topicPrefix: string;
  readonly group: string;
  readonly redis: Redis;
  readonly people: People;
  createEnvironmentId(): string;
  publish(facts: readonly IdentityLinkRecord[], headers?: Record<string, string>): Promise<void>;
  readDecisions(): Promise<ReturnType<typeof fromDecision>[]>;
  countCommitted(): Promise<number>;
  close(): Promise<void>;
}

export async function openRealStores(): Promise<RealStores> {
  const stores = testStores();
  const tag = `test-${randomBytes(4).toString('hex')}`;
  const topicPrefix = `${tag}.`;
  const decisionTopic = topicPrefix + TOPICS.identityDecisions.name;
  const linkTopic = topicPrefix + TOPICS.identityLinks.name;
  const topics = { brokers: stores.kafka, registry: stores.registry, prefix: topicPrefix, partitions: TEST_PARTITIONS };
  await applyTopics(topics);
  const kafka = new Kafka({ clientId: tag, brokers: stores.kafka, logLevel: logLevel.NOTHING });
  const admin = kafka.admin();
  await admin.connect();
  const producer = await openProducer({ brokers: stores.kafka, clientId: tag, topics: [linkTopic] });
  const schemaId = await createSchemaRegistry({ url: stores.registry }).idOf(
    `${linkTopic}-value`,
    identityLinkCodec.schema,
  );
  const { client: redis, deleteKeys, close: disconnect } = openTestRedis();
  const people = await openRedisPeople({ ...testRedis(), linkTopic });
  await people.rebuild.mintEpoch();
  return {
    topicPrefix,
    group: tag,
    redis,
    people,
    createEnvironmentId: () => `${tag}-${randomBytes(4).toString('hex')}`,
    publish: (facts, headers = {}) =>
      new Promise((resolve, reject) => {
        const records = facts.map((fact) => ({ ...toOutgoing(linkTopic, fact, schemaId), headers }));
        producer.send(records, (fault) => (fault === null ? resolve() : reject(fault)));
      }),
    readDecisions: async () => {
      const records = await readTopic({ brokers: stores.kafka, topic: decisionTopic });
      return records.map(({ value }) => fromDecision(value!));
    },
    countCommitted: async () => {
      const [offsets] = await admin.fetchOffsets({ groupId: tag, topics: [linkTopic] });
      return offsets!.partitions.reduce((sum, { offset }) => sum + Math.max(0, Number(offset)), 0);
    },
    async close() {
      await Promise.all([producer.close(), people.close(), deleteKeys(`*${tag}*`)]);
      disconnect();
      await admin.disconnect();
      await dropTopics(topics);
    },
  };
}
