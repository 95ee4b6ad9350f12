import { randomBytes } from 'node:crypto';
import { schemaSubjectOf } from '@playline/contracts';
import { openOwnDatabase } from './own-database.ts';
import { type Stores, testStores } from './stores.ts';

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
