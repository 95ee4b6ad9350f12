import { randomBytes, randomUUID } from 'node:crypto';
import { schemaSubjectOf } from '@playline/contracts';
import type { Redis } from 'ioredis';
import { type DatabaseTarget, runStatement, toDatabaseName } from './clickhouse-target.ts';
import { type Stores, tableTemplate, testStores } from './stores.ts';

/** A database with every table, under a name that no other test has. */
export interface OwnDatabase {
  readonly target: DatabaseTarget;
  /** Sends one statement about the database. @throws Error with the words of ClickHouse */
  query(sql: string): Promise<string>;
  /** Drops the database. */
  close(): Promise<void>;
}

/** Makes a database with every table, for a test that names it itself and drops it. */
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

/** An object of a database, and the statement that makes it as it is now. */
interface CreatedObject {
  readonly name: string;
  readonly statement: string;
}

/**
 * Creates a database with every table and view of the template, and with the rows that the SQL files insert. The result
 * equals that of the SQL files, for two thirds of the CPU: comments are already in the statements.
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

async function readObjects(template: DatabaseTarget): Promise<CreatedObject[]> {
  const lines = await runStatement(
    template,
    `SELECT name, create_table_query AS statement FROM system.tables
     WHERE database = currentDatabase() FORMAT JSONEachRow`,
  );
  return lines.split('\n').map((line) => JSON.parse(line) as CreatedObject);
}

/** Objects of one layer name only objects of the layers before. ClickHouse writes every name with its database. */
function toLayers(objects: readonly CreatedObject[], database: string): CreatedObject[][] {
  const names = new Set(objects.map(({ name }) => name));
  const needs = new Map(
    objects.map(({ name, statement }) => {
      const named = [...statement.matchAll(new RegExp(`${database}\\.(\\w+)`, 'g'))].map(([, of = '']) => of);
      return [name, new Set(named.filter((of) => of !== name && names.has(of)))];
    }),
  );
  const layers: CreatedObject[][] = [];
  for (let left = [...objects]; left.length > 0; ) {
    const isLeft = new Set(left.map(({ name }) => name));
    const layer = left.filter(({ name }) => ![...needs.get(name)!].some((of) => isLeft.has(of)));
    if (layer.length === 0) throw new Error(`these name each other: ${[...isLeft].join(', ')}`);
    layers.push(layer);
    left = left.filter((made) => !layer.includes(made));
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

/** Every topic with its schema, and a database with every table, under names of their own in real stores. */
export interface OwnStores {
  /** Before the name of every topic. */
  readonly prefix: string;
  readonly database: string;
  /** Where services and commands find all this: addresses, names and passwords, and nothing else. */
  readonly environment: Readonly<Record<string, string>>;
  /** Id of the schema registered for a topic; `topic` with its prefix. */
  schemaIdOf(topic: string): number;
  /** Asks the database. @throws Error with the words of ClickHouse */
  query(sql: string): Promise<string>;
  /** Gives every topic so many partitions, as an operator does. */
  addPartitions(count: number): Promise<void>;
  /** Drops topics, schemas and database. */
  close(): Promise<void>;
}

/**
 * How many partitions each topic of a test gets, unless the test needs others: enough for two members of a group and for
 * keys that go different ways. With the number of a deployment a broker would make three hundred for each test file.
 */
export const TEST_PARTITIONS = 2;

export interface OwnStoresOptions {
  readonly stores?: Stores;
  /** Of every topic. */
  readonly partitions?: number;
}

export async function openOwnStores({
  stores = testStores(),
  partitions = TEST_PARTITIONS,
}: OwnStoresOptions = {}): Promise<OwnStores> {
  // Loaded only where it is needed, as every client of a store: many tests of the testkit's users need none.
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
    addPartitions: async (count) => {
      await applyTopics({ ...topics, partitions: count });
    },
    close: async () => {
      await Promise.all([close(), dropTopics(topics)]);
    },
  };
}

/** A numbered database of the shared Redis that was empty, for tests of what is done to a whole database. */
export interface RedisDatabase {
  /** With its password and number. */
  readonly url: string;
  readonly client: Redis;
  /** Empties the database and gives it back. */
  close(): Promise<void>;
}

/** As many as a Redis has unless it is told otherwise; the first belongs to everybody. */
const DATABASES = 16;
/** Longer than any test run; a run that was killed does not keep the database for ever. */
const CLAIM_MS = 3_600_000;
/** Claims are in the first database: tests empty their own, and would lose a claim in it. */
const toClaim = (number: number) => `test:database:${number}`;

/** @param redis with its password; the one of the test run unless told otherwise @throws Error when every database is somebody's */
export async function openRedisDatabase(redis: string = testStores().redis): Promise<RedisDatabase> {
  // Loaded only where it is needed: a client of a store takes long to load.
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
  throw new Error('no numbered database of the test Redis is empty');
}
