import { randomBytes } from 'node:crypto';
import { applyTopics, dropTopics } from '@playline/infra/kafka';
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

export interface OwnStoresOptions {
  readonly stores?: Stores;
  /** Of every topic. */
  readonly partitions?: number;
}

export async function openOwnStores({
  stores = testStores(),
  partitions = 2,
}: OwnStoresOptions = {}): Promise<OwnStores> {
  const prefix = `test-${randomBytes(6).toString('hex')}.`;
  const topics = { brokers: stores.kafka, registry: stores.registry, prefix };
  const { schemas } = await applyTopics({ ...topics, partitions });
  const { target, query, close } = await openOwnDatabase(stores);
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
    schemaIdOf: (topic) => schemas.find(({ subject }) => subject === `${topic}-value`)!.id,
    query,
    addPartitions: async (count) => {
      await applyTopics({ ...topics, partitions: count });
    },
    close: async () => {
      await close();
      await dropTopics(topics);
    },
  };
}
