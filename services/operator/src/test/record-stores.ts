import { randomBytes } from 'node:crypto';
import { applyTopics, dropTopics } from '@playline/infra/kafka';
import { openRedisDatabase, type RedisDatabase, TEST_PARTITIONS, testStores } from '@playline/testkit';
import { createTestStores, type TestStores } from './open-stores.ts';

export interface RecordStores {
  readonly topicPrefix: string;
  readonly brokers: readonly string[];
  readonly registry: string;
  readonly redis: RedisDatabase;
  createStores(): TestStores;
  close(): Promise<void>;
}

export async function openRecordStores(): Promise<RecordStores> {
  const { kafka: brokers, registry } = testStores();
  const topicPrefix = `test-${randomBytes(4).toString('hex')}.`;
  const topics = { brokers, registry, prefix: topicPrefix, partitions: TEST_PARTITIONS };
  await applyTopics(topics);
  const redis = await openRedisDatabase();
  return {
    topicPrefix,
    brokers,
    registry,
    redis,
    createStores: () => createTestStores({ redis: redis.url, kafka: brokers, registry }),
    close: async () => {
      await redis.close();
      await dropTopics(topics);
    },
  };
}
