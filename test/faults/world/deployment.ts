import { randomBytes } from 'node:crypto';
import { ACCESS_KEYS, createKey } from '@playline/access-keys';
import { openRedisRecords } from '@playline/access-keys/redis';
import { createUnloggedStore } from '@playline/access-keys/test';
import { applySql } from '@playline/infra/clickhouse';
import { applyTopics, dropTopics } from '@playline/infra/kafka';
import type { Stack } from '@playline/infra/local';
import { openRedisPeople } from '@playline/people/redis';
import { Redis } from 'ioredis';
import { type Engine, query } from './clickhouse.ts';
import { waitFor } from './wait.ts';

/** Topics, tables and environments with keys. Seeds share a deployment until one of them fails. */
export type Deployment = Awaited<ReturnType<typeof openDeployment>>;

/** One for each member of a group and each broker of a cluster. */
const PARTITIONS = 3;

export type MakeTables = (engine: Engine) => Promise<unknown>;

export async function openDeployment(stack: Stack, makeTables: MakeTables = applySql) {
  const name = randomBytes(4).toString('hex');
  const { kafka, registry, redis, clickhouse } = stack.file;
  const engine = { ...clickhouse, database: `playline_test_${name}` };
  const topics = { brokers: kafka, registry, prefix: `test-${name}.`, partitions: PARTITIONS };
  const keys = await openRedisRecords(ACCESS_KEYS, { url: redis });
  const people = await openRedisPeople({ url: redis });
  await Promise.all([
    applyTopics(topics),
    makeTables(engine),
    waitFor('the key store is ready', () => keys.ready()),
    waitFor('the graph has its epoch', () => people.rebuild.mintEpoch()),
  ]);
  await people.close();
  return {
    topicPrefix: topics.prefix,
    engine,
    /** @returns a key of a new or known environment */
    addEnvironment: async (environmentId: string, kind: 'publishable' | 'secret' = 'publishable') => {
      const project = { projectId: 'test-faults', environment: 'production' } as const;
      const owner = { ...project, environmentId, kind };
      return (await createKey({ store: createUnloggedStore(keys), prefix: 'svcapik' }, owner)).key;
    },
    /** Closes connections, for stores that end too. */
    leave: () => keys.close(),
    /** Deletes the topics and the tables. */
    close: async () => {
      await keys.close();
      // The next deployment has other topics and tables, and would find persons in Redis that it never linked.
      const client = new Redis(redis);
      await client.flushall();
      client.disconnect();
      await query({ ...engine, database: 'system' }, `DROP DATABASE IF EXISTS ${engine.database} SYNC`);
      await dropTopics(topics);
    },
  };
}
