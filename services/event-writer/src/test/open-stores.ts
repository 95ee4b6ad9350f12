import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { freePorts } from '@playline/infra/local';
import type { OutgoingRecord, Producer } from '@playline/stream';
import { openProducer } from '@playline/stream/kafka';
import { bareEnvironment, openOwnStores, testStores, until } from '@playline/testkit';

const MAIN = new URL('../main.ts', import.meta.url).pathname;
const SMALL_BLOCKS = new URL('./small-blocks.ts', import.meta.url).href;

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
  const own = await openOwnStores();
  const { prefix, query, schemaIdOf } = own;
  const names = topics.map((topic) => prefix + topic);
  const producer = await openProducer({ brokers: testStores().kafka, clientId: 'test', topics: names });
  await until('the producer is ready', () => producer.ready());
  const environment = {
    ...own.environment,
    LOG_LEVEL: 'warn',
    SESSION_TIMEOUT_MS: '2000',
    // Blocks below the least size of a deployment: many in little time.
    NODE_OPTIONS: `--import=${SMALL_BLOCKS}`,
    BLOCK_AGE_MAX_MS: '50',
  };
  const writers = createWriters(environment, prefix);
  return {
    prefix,
    producer,
    ...writers,
    query,
    schemaIdOf,
    publish: (records) =>
      new Promise((resolve, reject) => {
        producer.send(records, (fault) => (fault === null ? resolve() : reject(fault)));
      }),
    rowsOf: async (text) => parseLines(await query(`${text} FORMAT JSONEachRow`)),
    close: async () => {
      await producer.close();
      await own.close();
    },
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
          ...bareEnvironment(),
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
