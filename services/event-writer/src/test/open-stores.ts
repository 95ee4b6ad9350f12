import type { ChildProcess } from 'node:child_process';
import type { OutgoingRecord, Producer } from '@playline/stream';
import { openProducer } from '@playline/stream/kafka';
import { openOwnStores, openServiceProcesses, type ServiceProcess, testStores, until } from '@playline/testkit';

const MAIN = new URL('../main.ts', import.meta.url).pathname;
const SMALL_BLOCKS = new URL('./small-blocks.ts', import.meta.url).href;

/** Topics and a database of one test in the real stores, and writers that use them. */
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
  /** @returns the exit code */
  stop(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null>;
  /** Kills every writer that still runs. */
  killWriters(): Promise<void>;
  close(): Promise<void>;
}

/** @param topics without their prefix, as in the records for `publish` */
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
    // Blocks smaller than a deployment may have, so that there are many in little time.
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

/** Starts and stops writers as processes. */
function createWriters(environment: Record<string, string>, prefix: string) {
  const processes = openServiceProcesses(MAIN, environment);
  const services = new Map<ChildProcess, ServiceProcess>();
  return {
    stop: (child: ChildProcess, signal: NodeJS.Signals) => services.get(child)!.stop(signal),
    killWriters: () => processes.close(),
    startWriter: async (group: string, settings: Record<string, string> = {}) => {
      const service = await processes.start({ CONSUMER_GROUP: prefix + group, ...settings });
      services.set(service.child, service);
      return service.child;
    },
  };
}
