import type { ChildProcess } from 'node:child_process';
import { frameRecord, type RecordCodec, type Topic } from '@playline/contracts';
import type { OutgoingRecord } from '@playline/stream';
import { openProducer } from '@playline/stream/kafka';
import { openOwnStores, openServiceProcesses, type ServiceProcess, testStores, until } from '@playline/testkit';

const MAIN = new URL('../main.ts', import.meta.url).pathname;
const SMALL_BLOCKS = new URL('./small-blocks.ts', import.meta.url).href;

interface KillOptions {
  readonly group: string;
  readonly kills: number;
  readonly settings: Record<string, string>;
  /** Batches that are published sequentially while writers are running. */
  readonly batches: readonly (readonly OutgoingRecord[])[];
  stored(): Promise<number>;
  readonly all: number;
}

/** Topics and a database in the real stores for one test, with writers that use them. */
export interface RealStores {
  readonly prefix: string;
  /** Returns the id of a topic's registered schema. @param topic topic name including the prefix */
  schemaIdOf(topic: string): number;
  /** Converts a record to its published form. Without a key, the partition is arbitrary. */
  outgoing<T>(topic: Topic, codec: RecordCodec<T>, record: T, key?: Buffer): OutgoingRecord;
  publish(records: readonly OutgoingRecord[]): Promise<void>;
  query(text: string): Promise<string>;
  readRows<T>(query: string): Promise<T[]>;
  startWriter(group: string, settings?: Record<string, string>): Promise<ChildProcess>;
  stop(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null>;
  /** Kills writers repeatedly, each after it has stored records. @returns the exit code of the last writer */
  killRepeatedly(options: KillOptions): Promise<number | null>;
  killWriters(): Promise<void>;
  close(): Promise<void>;
}

export async function openRealStores(topics: readonly string[]): Promise<RealStores> {
  const stores = await openOwnStores();
  const { prefix, query, schemaIdOf } = stores;
  const names = topics.map((topic) => prefix + topic);
  const producer = await openProducer({ brokers: testStores().kafka, clientId: 'test', topics: names });
  await until('the producer is ready', () => producer.ready());
  const environment = {
    ...stores.environment,
    LOG_LEVEL: 'warn',
    SESSION_TIMEOUT_MS: '2000',
    // Permits smaller blocks than a deployment, so that tests write many blocks quickly.
    NODE_OPTIONS: `--import=${SMALL_BLOCKS}`,
    BLOCK_AGE_MAX_MS: '50',
  };
  const writers = createWriters(environment, prefix);
  const publish = (records: readonly OutgoingRecord[]) =>
    new Promise<void>((resolve, reject) => {
      producer.send(records, (error) => (error === null ? resolve() : reject(error)));
    });
  return {
    prefix,
    ...writers,
    query,
    schemaIdOf,
    publish,
    outgoing(topic, codec, record, key) {
      const name = prefix + topic.name;
      return { topic: name, key: key ?? null, value: frameRecord(schemaIdOf(name), codec.encode(record)) };
    },
    killRepeatedly: (options) => killRepeatedly({ ...writers, publish }, options),
    readRows: async (text) => parseLines(await query(`${text} FORMAT JSONEachRow`)),
    close: async () => {
      await producer.close();
      await stores.close();
    },
  };
}

type Writers = Pick<RealStores, 'startWriter' | 'stop' | 'publish'>;

async function killRepeatedly({ startWriter, stop, publish }: Writers, options: KillOptions): Promise<number | null> {
  const { group, kills, settings, batches, stored, all } = options;
  const publishing = (async () => {
    for (const batch of batches) await publish(batch);
  })();
  for (let kill = 0; kill < kills; kill++) {
    const writer = await startWriter(group, settings);
    const before = await stored();
    await until('rows are stored', async () => (await stored()) > before || before === all);
    await stop(writer, 'SIGKILL');
  }
  await publishing;
  const writer = await startWriter(group, settings);
  await until('all records are stored', async () => (await stored()) === all, 90_000);
  return await stop(writer, 'SIGTERM');
}

function parseLines<T>(text: string): T[] {
  return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as T]));
}

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
