import { randomBytes, randomUUID } from 'node:crypto';
import { schemaSubjectOf } from '@playline/contracts';
import type { Redis } from 'ioredis';
import { type DatabaseTarget, runStatement, toDatabaseName } from './clickhouse-target.ts';
import { type Stores, tableTemplate, testStores } from './stores.ts';

export interface OwnDatabase {
  readonly target: DatabaseTarget;
  /** Sends a statement. @throws Error with ClickHouse's message */
  query(sql: string): Promise<string>;
  close(): Promise<void>;
}

/** Creates a database with every table; the caller drops it. */
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

/**
 * Copies tables, views and rows of the template: the same result as applying the SQL files, for two thirds of the CPU.
 */
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

/** Objects in a layer refer only to earlier layers. ClickHouse qualifies every name with its database. */
function toLayers(objects: readonly SchemaObject[], database: string): SchemaObject[][] {
  const names = new Set(objects.map(({ name }) => name));
  const references = new Map(
    objects.map(({ name, statement }) => {
      const named = [...statement.matchAll(new RegExp(`${database}\\.(\\w+)`, 'g'))].map(([, of = '']) => of);
      return [name, new Set(named.filter((of) => of !== name && names.has(of)))];
    }),
  );
  const layers: SchemaObject[][] = [];
  for (let rest = [...objects]; rest.length > 0; ) {
    const left = new Set(rest.map(({ name }) => name));
    const layer = rest.filter(({ name }) => ![...references.get(name)!].some((each) => left.has(each)));
    if (layer.length === 0) throw new Error(`circular references: ${[...left].join(', ')}`);
    layers.push(layer);
    rest = rest.filter((each) => !layer.includes(each));
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

/** Topics with schemas and a database with every table, used by one test only. */
export interface OwnStores {
  readonly prefix: string;
  readonly database: string;
  /** Settings for services and commands: addresses, names and passwords. */
  readonly environment: Readonly<Record<string, string>>;
  /** Schema id for a topic. @param topic includes the prefix */
  schemaIdOf(topic: string): number;
  /** Queries the database. @throws Error with ClickHouse's message */
  query(sql: string): Promise<string>;
  addPartitions(count: number): Promise<void>;
  close(): Promise<void>;
}

/** Enough for two group members. A deployment's number would create 300 partitions per test file. */
export const TEST_PARTITIONS = 2;

export interface OwnStoresOptions {
  readonly stores?: Stores;
  readonly partitions?: number;
}

export async function openOwnStores({
  stores = testStores(),
  partitions = TEST_PARTITIONS,
}: OwnStoresOptions = {}): Promise<OwnStores> {
  // Imported only here, because many tests need no Kafka client.
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
  readonly client: Redis;
  close(): Promise<void>;
}

const DATABASES = 16;
/** Longer than any test run, so that claims of killed runs expire. */
const CLAIM_MS = 3_600_000;
/** Claims are stored in the first database, because tests empty their own. */
const toClaim = (number: number) => `test:database:${number}`;

/** @param redis address with the password @throws Error when every database is in use */
export async function openRedisDatabase(redis: string = testStores().redis): Promise<RedisDatabase> {
  // Imported only here, because the client loads slowly.
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
      return { url: url.href, client, close };
    }
    await shared.del(toClaim(number));
    client.disconnect();
  }
  shared.disconnect();
  throw new Error('every numbered database of the test Redis is in use');
}
