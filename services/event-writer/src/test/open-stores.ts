import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { applySql } from '@playline/infra/clickhouse';
import { applyTopics, dropTopics } from '@playline/infra/kafka';
import { freePorts } from '@playline/infra/local';
import type { OutgoingRecord, Producer } from '@playline/stream';
import { openProducer } from '@playline/stream/kafka';
import { testStores, until } from '@playline/testkit';

const MAIN = new URL('../main.ts', import.meta.url).pathname;

/** Topics and a database of their own in the real stores, and writers that run on them. */
export interface RealStores {
  readonly prefix: string;
  readonly producer: Producer;
  /** Id of the schema registered for a topic; `topic` with its prefix. */
  schemaIdOf(topic: string): number;
  /** Resolves when every record is acknowledged. */
  publish(records: readonly OutgoingRecord[]): Promise<void>;
  query(text: string): Promise<string>;
  rowsOf<T>(query: string): Promise<T[]>;
  /** A writer as its own process, ready. */
  startWriter(group: string, settings?: Record<string, string>): Promise<ChildProcess>;
  /** Gives the exit code. */
  stop(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null>;
  /** Kills every writer that still runs. */
  killWriters(): Promise<void>;
  close(): Promise<void>;
}

/** @param topics without their prefix: what `publish` is given */
export async function openRealStores(topics: readonly string[]): Promise<RealStores> {
  const stores = testStores();
  const name = randomBytes(6).toString('hex');
  const prefix = `test-${name}.`;
  const database = `playline_test_${name}`;
  const { url, user, password } = stores.clickhouse;
  const target = { brokers: stores.kafka, registry: stores.registry, prefix };
  const applied = await applyTopics({ ...target, partitions: 2 });
  await applySql({ ...stores.clickhouse, database });
  const names = topics.map((topic) => prefix + topic);
  const producer = await openProducer({ brokers: stores.kafka, clientId: 'test', topics: names });
  await until('the producer is ready', () => producer.ready());
  const query = createQuery(database);
  const environment = {
    LOG_LEVEL: 'warn',
    KAFKA_BROKERS: stores.kafka.join(','),
    SCHEMA_REGISTRY_URL: stores.registry,
    CLICKHOUSE_URL: url,
    CLICKHOUSE_USER: user,
    CLICKHOUSE_PASSWORD: password,
    CLICKHOUSE_DATABASE: database,
    TOPIC_PREFIX: prefix,
    SESSION_TIMEOUT_MS: '2000',
    BLOCK_AGE_MAX_MS: '50',
  };
  const writers = createWriters(environment, prefix);
  return {
    prefix,
    producer,
    ...writers,
    query,
    schemaIdOf: (topic) => applied.schemas.find(({ subject }) => subject === `${topic}-value`)!.id,
    publish: (records) =>
      new Promise((resolve, reject) => {
        producer.send(records, (fault) => (fault === null ? resolve() : reject(fault)));
      }),
    rowsOf: async (text) => parseLines(await query(`${text} FORMAT JSONEachRow`)),
    close: async () => {
      await producer.close();
      await query(`DROP DATABASE ${database} SYNC`);
      await dropTopics(target);
    },
  };
}

function createQuery(database: string): RealStores['query'] {
  const { url, user, password } = testStores().clickhouse;
  const headers = { 'x-clickhouse-user': user, 'x-clickhouse-key': password, 'x-clickhouse-database': database };
  return async (body) => {
    const answer = await fetch(url, { method: 'POST', headers, body });
    if (!answer.ok) throw new Error(await answer.text());
    return answer.text();
  };
}

function parseLines<T>(text: string): T[] {
  const lines = text.split('\n').filter((line) => line !== '');
  return lines.map((line) => JSON.parse(line) as T);
}

function createWriters(environment: Record<string, string>, prefix: string) {
  const running = new Set<ChildProcess>();
  const stop = async (child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> => {
    const exit = once(child, 'exit');
    child.kill(signal);
    return (await exit)[0];
  };
  return {
    stop,
    killWriters: async () => {
      await Promise.all([...running].map((child) => stop(child, 'SIGKILL')));
    },
    startWriter: async (group: string, settings: Record<string, string> = {}) => {
      const [port] = await freePorts(1);
      const child = spawn(process.execPath, [MAIN], {
        env: {
          PATH: process.env.PATH,
          ...environment,
          CONSUMER_GROUP: prefix + group,
          ADMIN_PORT: String(port),
          ...settings,
        },
        stdio: ['ignore', 'inherit', 'inherit'],
      });
      running.add(child);
      child.once('exit', () => running.delete(child));
      await until('the writer is ready', async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok);
      return child;
    },
  };
}
