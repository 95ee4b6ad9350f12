import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { ACCESS_KEYS, type AccessKeyRecord, createKey, type NewKey, type RecordStore } from '@playline/access-keys';
import { openRedisRecords } from '@playline/access-keys/redis';
import { createUnloggedStore } from '@playline/access-keys/test';
import { TOPICS } from '@playline/contracts';
import { applyTopics, dropTopics } from '@playline/infra/kafka';
import { readTopic } from '@playline/stream/kafka';
import { type HttpProcess, openHttpProcess, TEST_PARTITIONS, testStores } from '@playline/testkit';
import { Redis } from 'ioredis';
import { KEY_HEADER, MESSAGES } from './open-gateway.ts';

const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url));

/** Topics, schemas, and an environment with a key in the real stores. */
export interface RealStores {
  readonly topicPrefix: string;
  readonly store: RecordStore<AccessKeyRecord>;
  readonly owner: NewKey;
  readonly key: string;
  /** Reads the values of all message records on the log. */
  readLog(): Promise<Buffer[]>;
  close(): Promise<void>;
}

export async function openRealStores(): Promise<RealStores> {
  const stores = testStores();
  const tag = `test-${randomBytes(4).toString('hex')}`;
  const topicPrefix = `${tag}.`;
  const topics = { brokers: stores.kafka, registry: stores.registry, prefix: topicPrefix, partitions: TEST_PARTITIONS };
  await applyTopics(topics);
  const view = await openRedisRecords(ACCESS_KEYS, { url: stores.redis });
  const store = createUnloggedStore(view);
  const owner: NewKey = { projectId: tag, environmentId: tag, environment: 'production', kind: 'publishable' };
  const { key } = await createKey({ store, prefix: 'svcapik' }, owner);
  return {
    topicPrefix,
    store,
    owner,
    key,
    readLog: async () => {
      const records = await readTopic({ brokers: stores.kafka, topic: topicPrefix + TOPICS.messages.name });
      return records.map(({ value }) => value!);
    },
    close: async () => {
      const records = (await store.readAll()).filter(({ projectId }) => projectId === tag);
      await view.close();
      const redis = new Redis(stores.redis);
      await redis.hdel('access:keys', ...records.map(({ id }) => id));
      redis.disconnect();
      await dropTopics(topics);
    },
  };
}

/** A gateway that runs as a separate process. */
export interface GatewayProcess extends HttpProcess {
  post(key: string, body: unknown): Promise<Response>;
}

export async function openProcess(
  topicPrefix: string,
  environment: Record<string, string> = {},
): Promise<GatewayProcess> {
  const stores = testStores();
  const opened = await openHttpProcess(MAIN, {
    KAFKA_BROKERS: stores.kafka.join(),
    SCHEMA_REGISTRY_URL: stores.registry,
    REDIS_URL: stores.redis,
    IDENTITY_PEPPER: randomBytes(32).toString('hex'),
    TOPIC_PREFIX: topicPrefix,
    ...environment,
  });
  opened.child.stderr?.pipe(process.stderr, { end: false });
  const post = (key: string, body: unknown) =>
    fetch(opened.url + MESSAGES, {
      method: 'POST',
      headers: { 'content-type': 'application/json', [KEY_HEADER]: key },
      body: JSON.stringify(body),
    });
  return { ...opened, post };
}
