import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { FRAME_BYTES, type MessageRecord, messageRecordCodec, TOPICS } from '@playline/contracts';
import { applyTopics, dropTopics } from '@playline/infra/kafka';
import { CHECKOUT, freePorts, nodeOptionsOf } from '@playline/infra/local';
import { openRedisDatabase, TEST_PARTITIONS, testStores, until } from '@playline/testkit';
import { Kafka, logLevel } from 'kafkajs';

/** A separate gateway process on the test stores, and the messages that it has written to the log. */
export interface Gateway {
  readonly url: string;
  readonly publishableKey: string;
  /** All message records received so far, with the id as a UUID string. */
  readonly arrived: readonly (Omit<MessageRecord, 'messageId'> & { id: string })[];
  /** Waits until a record for each id has arrived. Resolves to the first record per id. */
  awaitIds(ids: readonly string[]): Promise<Gateway['arrived']>;
  close(): Promise<void>;
}

export async function openGateway(): Promise<Gateway> {
  const stores = testStores();
  const tag = `test-${randomBytes(6).toString('hex')}`;
  const prefix = `${tag}.`;
  await applyTopics({ brokers: stores.kafka, registry: stores.registry, prefix, partitions: TEST_PARTITIONS });
  // Uses a separate database, because the gateway would treat keys from another log as a sign of log loss.
  const redis = await openRedisDatabase();
  const publishableKey = await createKey(tag, prefix, redis.url);
  const process = await openProcess(prefix, redis.url);
  const log = await openLog(prefix + TOPICS.messages.name);
  const find = (id: string) => log.arrived.find((record) => record.id === id);
  return {
    url: process.url,
    publishableKey,
    arrived: log.arrived,
    awaitIds: (ids) =>
      until('the messages have arrived', () => {
        const found = ids.flatMap((id) => find(id) ?? []);
        return found.length === ids.length ? found : null;
      }),
    async close() {
      await Promise.all([process.close(), log.close()]);
      await redis.close();
      await dropTopics({ brokers: stores.kafka, registry: stores.registry, prefix });
    },
  };
}

/** Creates the key with operator commands. */
async function createKey(project: string, topicPrefix: string, redis: string): Promise<string> {
  const { kafka, registry } = testStores();
  const operate = (...args: string[]) =>
    promisify(execFile)(process.execPath, ['services/operator/src/main.ts', ...args, '--json'], {
      cwd: CHECKOUT,
      env: {
        ...process.env,
        KAFKA_BROKERS: kafka.join(),
        SCHEMA_REGISTRY_URL: registry,
        REDIS_URL: redis,
        TOPIC_PREFIX: topicPrefix,
      },
    });
  await operate('projects', 'create', '--name', project, '--id', project);
  const keyOptions = ['--project', project, '--environment', 'production', '--kind', 'publishable'];
  const { stdout } = await operate('keys', 'create', ...keyOptions);
  return JSON.parse(stdout).key;
}

async function openProcess(topicPrefix: string, redis: string): Promise<{ url: string; close(): Promise<void> }> {
  const stores = testStores();
  const [httpPort, adminPort] = await freePorts(2);
  const child = spawn(process.execPath, [...nodeOptionsOf('gateway'), 'services/gateway/src/main.ts'], {
    cwd: CHECKOUT,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: {
      ...process.env,
      LOG_LEVEL: 'error',
      KAFKA_BROKERS: stores.kafka.join(),
      SCHEMA_REGISTRY_URL: stores.registry,
      REDIS_URL: redis,
      IDENTITY_PEPPER: randomBytes(32).toString('hex'),
      TOPIC_PREFIX: topicPrefix,
      HTTP_HOST: '127.0.0.1',
      HTTP_PORT: String(httpPort),
      ADMIN_HOST: '127.0.0.1',
      ADMIN_PORT: String(adminPort),
    },
  });
  const ended = once(child, 'exit');
  const close = async () => {
    child.kill('SIGTERM');
    await ended;
  };
  try {
    await until('the gateway is ready', async () => (await fetch(`http://127.0.0.1:${adminPort}/readyz`)).ok);
  } catch (error) {
    await close();
    throw error;
  }
  return { url: `http://127.0.0.1:${httpPort}`, close };
}

async function openLog(topic: string): Promise<{ arrived: Gateway['arrived'][number][]; close(): Promise<void> }> {
  const arrived: Gateway['arrived'][number][] = [];
  const kafka = new Kafka({ clientId: topic, brokers: testStores().kafka, logLevel: logLevel.NOTHING });
  const consumer = kafka.consumer({ groupId: `read-${topic}`, maxWaitTimeInMs: 100 });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await consumer.run({
    eachMessage: async ({ message }) => {
      if (message.value === null) return;
      const { messageId, ...record } = messageRecordCodec.decode(message.value.subarray(FRAME_BYTES));
      arrived.push({ ...record, id: toUuid(messageId) });
    },
  });
  return { arrived, close: () => consumer.disconnect() };
}

function toUuid(bytes: Buffer): string {
  return bytes.toString('hex').replace(/(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
