import { randomBytes, randomUUID } from 'node:crypto';
import { schemaSubjectOf } from '@playline/contracts';
import type { Redis } from 'ioredis';
import { type DatabaseTarget, runStatement, toDatabaseName } from './clickhouse-target.ts';
import { type Stores, tableTemplate, testStores } from './stores.ts';
import type { RedisTarget } from './test-redis.ts';

export interface OwnDatabase {
  readonly target: DatabaseTarget;
  /** Executes a statement. @throws Error with ClickHouse's message */
  query(sql: string): Promise<string>;
  close(): Promise<void>;
}

/** Creates a database with every table. The caller must drop the database. */
export async function createTables(target: DatabaseTarget): Promise<void> {
  const template = tableTemplate();
  if (template !== null) return copyTables(template, target);
  const { applySql } = await import('@playline/infra/clickhouse');
  await applySql(target);
}

export async function openOwnDatabase(stores: Stores = testStores()): Promise<OwnDatabase> {
  const { url, user, password } = stores.clickhouse;
  const target = { url, user, password, database: toDatabaseName() };
  await createTables(target);
  const query = (sql: string) => runStatement(target, sql);
  return { target, query, close: async () => void (await query(`DROP DATABASE ${target.database} SYNC`)) };
}

interface SchemaObject {
  readonly name: string;
  readonly statement: string;
}

/** Copies all tables, views and rows. Copying takes a third less CPU time than applying the SQL files. */
async function copyTables(template: DatabaseTarget, target: DatabaseTarget): Promise<void> {
  const objects = await readObjects(template);
  await runStatement({ ...target, database: 'default' }, `CREATE DATABASE ${target.database} ENGINE = Atomic`);
  for (const layer of toLayers(objects, template.database))
    await Promise.all(
      layer.map(({ statement }) => runStatement(target, statement.replaceAll(template.database, target.database))),
    );
  await copyRows(template, target);
}

async function readObjects(template: DatabaseTarget): Promise<SchemaObject[]> {
  const lines = await runStatement(
    template,
    `SELECT name, create_table_query AS statement FROM system.tables
     WHERE database = currentDatabase() FORMAT JSONEachRow`,
  );
  return lines.split('\n').map((line) => JSON.parse(line) as SchemaObject);
}

/** Groups objects into layers that refer only to earlier layers. ClickHouse qualifies every name with the database. */
function toLayers(objects: readonly SchemaObject[], database: string): SchemaObject[][] {
  const names = new Set(objects.map(({ name }) => name));
  const references = new Map(
    objects.map(({ name, statement }) => {
      const named = [...statement.matchAll(new RegExp(`${database}\\.(\\w+)`, 'g'))].map(([, name = '']) => name);
      return [name, new Set(named.filter((each) => each !== name && names.has(each)))];
    }),
  );
  const layers: SchemaObject[][] = [];
  for (let pending = [...objects]; pending.length > 0; ) {
    const remaining = new Set(pending.map(({ name }) => name));
    const layer = pending.filter(({ name }) => ![...references.get(name)!].some((each) => remaining.has(each)));
    if (layer.length === 0) throw new Error(`circular references: ${[...remaining].join(', ')}`);
    layers.push(layer);
    pending = pending.filter((each) => !layer.includes(each));
  }
  return layers;
}

async function copyRows(template: DatabaseTarget, target: DatabaseTarget): Promise<void> {
  const names = await runStatement(
    template,
    'SELECT name FROM system.tables WHERE database = currentDatabase() AND total_rows > 0',
  );
  await Promise.all(
    names.split('\n').map(async (name) => {
      const rows = await runStatement(template, `SELECT * FROM ${name} FORMAT JSONEachRow`);
      await runStatement(target, `INSERT INTO ${name} FORMAT JSONEachRow\n${rows}`);
    }),
  );
}

/** Topics with schemas and a database with every table, for exclusive use by one test. */
export interface OwnStores {
  readonly prefix: string;
  readonly database: string;
  /** Environment variables for services and commands: addresses, names and passwords. */
  readonly environment: Readonly<Record<string, string>>;
  /** Returns the schema id for a topic. @param topic topic name including the prefix */
  schemaIdOf(topic: string): number;
  /** Executes a query. @throws Error with ClickHouse's message */
  query(sql: string): Promise<string>;
  addPartitions(count: number): Promise<void>;
  close(): Promise<void>;
}

/** Enough for two consumer group members. Production settings would create 300 partitions per test file. */
export const TEST_PARTITIONS = 2;

export interface OwnStoresOptions {
  readonly stores?: Stores;
  readonly partitions?: number;
}

export async function openOwnStores({
  stores = testStores(),
  partitions = TEST_PARTITIONS,
}: OwnStoresOptions = {}): Promise<OwnStores> {
  // Imported lazily, because many tests need no Kafka client.
  const { applyTopics, dropTopics } = await import('@playline/infra/kafka');
  const prefix = `test-${randomBytes(6).toString('hex')}.`;
  const topics = { brokers: stores.kafka, registry: stores.registry, prefix };
  const [{ schemas }, { target, query, close }] = await Promise.all([
    applyTopics({ ...topics, partitions }),
    openOwnDatabase(stores),
  ]);
  const { url, user, password, database } = target;
  return {
    prefix,
    database,
    environment: {
      KAFKA_BROKERS: stores.kafka.join(','),
      SCHEMA_REGISTRY_URL: stores.registry,
      CLICKHOUSE_URL: url,
      CLICKHOUSE_USER: user,
      CLICKHOUSE_PASSWORD: password,
      CLICKHOUSE_DATABASE: database,
      TOPIC_PREFIX: prefix,
    },
    schemaIdOf: (topic) => schemas.find(({ subject }) => subject === schemaSubjectOf(topic))!.id,
    query,
    addPartitions: async (count) => void (await applyTopics({ ...topics, partitions: count })),
    close: async () => void (await Promise.all([close(), dropTopics(topics)])),
  };
}

export interface RedisDatabase {
  readonly url: string;
  /** Connection options for stores. */
  readonly target: RedisTarget;
  readonly client: Redis;
  close(): Promise<void>;
}

const DATABASES = 16;
/** Longer than any test run. Claims from killed runs expire after this time. */
const CLAIM_MS = 3_600_000;
/** Claims are stored in database 0, because tests flush their own databases. */
const toClaim = (number: number) => `test:database:${number}`;

/** Claims an unused database. @param redis URL with password @throws Error if every database is in use */
export async function openRedisDatabase(redis: string = testStores().redis): Promise<RedisDatabase> {
  // Imported lazily, because the client loads slowly.
  const { clusterDatabase } = await import('./test-redis.ts');
  const database = clusterDatabase();
  if (database !== null) return database;
  const { Redis: Client } = await import('ioredis');
  const shared = new Client(redis);
  for (let number = DATABASES - 1; number > 0; number--) {
    if ((await shared.set(toClaim(number), randomUUID(), 'PX', CLAIM_MS, 'NX')) !== 'OK') continue;
    const url = new URL(redis);
    url.pathname = `/${number}`;
    const client = new Client(url.href);
    if ((await client.dbsize()) === 0) {
      const close = async () => {
        await client.flushdb();
        await shared.del(toClaim(number));
        client.disconnect();
        shared.disconnect();
      };
      return { url: url.href, target: { url: url.href }, client, close };
    }
    await shared.del(toClaim(number));
    client.disconnect();
  }
  shared.disconnect();
  throw new Error('every database of the test Redis is in use: stop other test runs');
}
