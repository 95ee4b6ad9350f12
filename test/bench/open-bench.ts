import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ACCESS_KEYS, createKey, type KeyKind } from '@playline/access-keys';
import { openRedisRecords } from '@playline/access-keys/redis';
import { createUnloggedStore } from '@playline/access-keys/test';
import { createEngine } from './clickhouse.ts';
import type { Bench } from './figure.ts';
import { createKafka } from './kafka-client.ts';
import { waitFor } from './processes.ts';
import type { BenchStores } from './stores.ts';

/** A Redis database that nothing else uses, because figures may run beside other work. */
const REDIS_DATABASE = 9;
const ACCESS_KEY_PREFIX = 'svcapik';
/** Opening does not wait for Redis, so the first use may have to. */
const KEY_STORE_MAX_MS = 10_000;
const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/**
 * Creates separate topics, tables and a key for one figure, so that no figure reads another one's data. `close` removes
 * them.
 */
export async function openBench(
  stores: BenchStores,
  size: Pick<Bench, 'scale' | 'rows'> = { scale: 1 },
): Promise<{ bench: Bench; close(): Promise<void> }> {
  const run = randomBytes(4).toString('hex');
  const [topicPrefix, database, environmentId] = [
    `test-bench-${run}.`,
    `playline_test_bench_${run}`,
    `test-bench-${run}`,
  ];
  const redis = toBenchDatabase(stores.redis);
  const environment = environmentOf({ ...stores, redis }, { topicPrefix, database });
  const serviceEnvironment = { ...environment, ...stores.secured };
  if (stores.secured !== undefined) serviceEnvironment.REDIS_URL = toBenchDatabase(serviceEnvironment.REDIS_URL ?? '');
  const close = async () => {
    await removeTopics(stores.kafka, topicPrefix);
    await createEngine({ stores, database: 'system' }).ask(`DROP DATABASE IF EXISTS ${database} SYNC`);
  };
  try {
    await runFile('infra/kafka/main.ts', environment);
    await runFile('infra/clickhouse/main.ts', environment);
    await runFile('services/operator/src/main.ts', environment, ['identity', 'init']);
    const keyOf = await createAccessKeys(redis, environmentId);
    const keys = { accessKey: keyOf.publishable, secretKey: keyOf.secret };
    const names = { topicPrefix, database, environmentId };
    return { bench: { stores, ...names, ...keys, ...size, environment, serviceEnvironment }, close };
  } catch (error) {
    await close();
    throw error;
  }
}

function toBenchDatabase(redisUrl: string): string {
  const url = new URL(redisUrl);
  url.pathname = `/${REDIS_DATABASE}`;
  return url.href;
}

function environmentOf(stores: BenchStores, names: { topicPrefix: string; database: string }): Record<string, string> {
  return {
    LOG_LEVEL: 'warn',
    KAFKA_BROKERS: stores.kafka.join(','),
    SCHEMA_REGISTRY_URL: stores.registry,
    REDIS_URL: stores.redis,
    CLICKHOUSE_URL: stores.clickhouse.url,
    CLICKHOUSE_USER: stores.clickhouse.user,
    CLICKHOUSE_PASSWORD: stores.clickhouse.password,
    CLICKHOUSE_DATABASE: names.database,
    TOPIC_PREFIX: names.topicPrefix,
    IDENTITY_PEPPER: randomBytes(32).toString('hex'),
    ACCESS_KEY_PREFIX,
    KAFKAJS_NO_PARTITIONER_WARNING: '1',
  };
}

/** @throws Error with the file's output when it does not end with 0 */
async function runFile(file: string, environment: Record<string, string>, args: string[] = []): Promise<void> {
  const env = { PATH: process.env.PATH ?? '', ...environment };
  const run = promisify(execFile)(process.execPath, [file, ...args], { cwd: ROOT, env });
  await run.catch(({ stderr }: { stderr: string }) => {
    throw new Error(`${file} ${args.join(' ')}: ${stderr.trim()}`);
  });
}

async function createAccessKeys(redisUrl: string, environmentId: string): Promise<Record<KeyKind, string>> {
  const view = await openRedisRecords(ACCESS_KEYS, { url: redisUrl });
  const store = createUnloggedStore(view);
  const create = async (kind: KeyKind) => {
    const options = { projectId: 'test-bench', environmentId, environment: 'development', kind } as const;
    return (await createKey({ store, prefix: ACCESS_KEY_PREFIX }, options)).key;
  };
  try {
    await waitFor('the key store is ready', () => view.ready(), { maxMs: KEY_STORE_MAX_MS });
    return { publishable: await create('publishable'), secret: await create('secret') };
  } finally {
    await view.close();
  }
}

async function removeTopics(brokers: string[], prefix: string): Promise<void> {
  const admin = createKafka('bench', brokers).admin();
  await admin.connect();
  try {
    const topics = (await admin.listTopics()).filter((topic) => topic.startsWith(prefix));
    if (topics.length > 0) await admin.deleteTopics({ topics });
  } finally {
    await admin.disconnect();
  }
}
