import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { ACCESS_KEYS, createKey, type KeyKind } from '@playline/access-keys';
import { openRedisRecords } from '@playline/access-keys/redis';
import { createUnloggedStore } from '@playline/access-keys/test';
import { Redis } from 'ioredis';
import { createEngine } from './clickhouse.ts';
import type { Bench } from './figure.ts';
import { withAdmin } from './kafka-client.ts';
import { ROOT, waitFor } from './processes.ts';
import type { BenchStores } from './stores.ts';

const REDIS_DATABASE = 9;
export const ACCESS_KEY_PREFIX = 'svcapik';

/** Creates separate topics, tables and keys for a figure. `close` removes them. */
export async function openBench(stores: BenchStores, size: Pick<Bench, 'scale' | 'rows'> = { scale: 1 }) {
  const run = randomBytes(4).toString('hex');
  const [topicPrefix, database] = [`test-bench-${run}.`, `playline_test_bench_${run}`];
  const environmentId = `test-bench-${run}`;
  const environment = environmentOf(stores, { topicPrefix, database });
  const serviceEnvironment = { ...environment, ...stores.secured };
  serviceEnvironment.REDIS_URL = toBenchDatabase(serviceEnvironment.REDIS_URL ?? '');
  const close = async () => {
    await removeTopics(stores.kafka, topicPrefix);
    await emptyRedis(environment.REDIS_URL ?? '');
    await createEngine({ stores, database: 'system' }).query(`DROP DATABASE IF EXISTS ${database} SYNC`);
  };
  try {
    await runFile('infra/kafka/main.ts', environment);
    await runFile('infra/clickhouse/main.ts', environment);
    await operate({ environment }, ['identity', 'init']);
    const keys = await createAccessKeys(environment.REDIS_URL ?? '', environmentId);
    const names = { topicPrefix, database, environmentId };
    return { bench: { stores, ...names, ...keys, ...size, environment, serviceEnvironment }, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Creates the tables again. Removed tables take no part in a later measurement, because merges of them end as well. */
export async function emptyTables({ stores, database, environment }: Bench): Promise<void> {
  await createEngine({ stores, database: 'system' }).query(`DROP DATABASE ${database} SYNC`);
  await runFile('infra/clickhouse/main.ts', environment);
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
    REDIS_URL: toBenchDatabase(stores.redis),
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

/** @returns stdout @throws Error with stderr if the exit code is not 0 */
async function runFile(file: string, environment: Bench['environment'], args: readonly string[] = []): Promise<string> {
  const env = { PATH: process.env.PATH ?? '', ...environment };
  const run = promisify(execFile)(process.execPath, [file, ...args], { cwd: ROOT, env });
  const { stdout } = await run.catch(({ stderr }: { stderr: string }) => {
    throw new Error(`${file} ${args.join(' ')}: ${stderr.trim()}`);
  });
  return stdout;
}

/** Runs an operator command. @returns stdout */
export const operate = ({ environment }: Pick<Bench, 'environment'>, args: readonly string[]): Promise<string> =>
  runFile('services/operator/src/main.ts', environment, args);

async function createAccessKeys(
  redisUrl: string,
  environmentId: string,
): Promise<Pick<Bench, 'publishableKey' | 'secretKey'>> {
  const view = await openRedisRecords(ACCESS_KEYS, { url: redisUrl });
  const store = createUnloggedStore(view);
  const create = async (kind: KeyKind) => {
    const options = { projectId: 'test-bench', environmentId, environment: 'development', kind } as const;
    return (await createKey({ store, prefix: ACCESS_KEY_PREFIX }, options)).key;
  };
  try {
    // Opening the view does not wait for Redis.
    await waitFor('the key store is ready', () => view.ready(), { maxMs: 10_000 });
    return { publishableKey: await create('publishable'), secretKey: await create('secret') };
  } finally {
    await view.close();
  }
}

async function emptyRedis(url: string): Promise<void> {
  const redis = new Redis(url);
  await redis.flushdb();
  redis.disconnect();
}

const removeTopics = (brokers: readonly string[], prefix: string) =>
  withAdmin(brokers, async (admin) => {
    const topics = (await admin.listTopics()).filter((topic) => topic.startsWith(prefix));
    if (topics.length > 0) await admin.deleteTopics({ topics });
  });
