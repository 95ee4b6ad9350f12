import type { ChildProcess } from 'node:child_process';
import { frameRecord, type RecordCodec, type Topic } from '@playline/contracts';
import type { OutgoingRecord } from '@playline/stream';
import { openProducer } from '@playline/stream/kafka';
import { openOwnStores, openServiceProcesses, type ServiceProcess, testStores, until } from '@playline/testkit';

const MAIN = new URL('../main.ts', import.meta.url).pathname;
const SMALL_BLOCKS = new URL('./small-blocks.ts', import.meta.url).href;

interface Killing {
  readonly group: string;
  readonly kills: number;
  readonly settings: Record<string, string>;
  /** Published one after the other while writers run. */
  readonly batches: readonly (readonly OutgoingRecord[])[];
  /** The number of different records that are stored, and the number that are published. */
  stored(): Promise<number>;
  readonly all: number;
}

/** Topics and a database of one test in the real stores, and writers that use them. */
export interface RealStores {
  readonly prefix: string;
  /** Id of the schema registered for a topic; `topic` with its prefix. */
  schemaIdOf(topic: string): number;
  /** A record as it is published; without a key of its own, its partition is any. */
  outgoing<T>(topic: Topic, codec: RecordCodec<T>, record: T, key?: Buffer): OutgoingRecord;
  /** Resolves when every record is acknowledged. */
  publish(records: readonly OutgoingRecord[]): Promise<void>;
  query(text: string): Promise<string>;
  rowsOf<T>(query: string): Promise<T[]>;
  /** A writer as its own process, ready. */
  startWriter(group: string, settings?: Record<string, string>): Promise<ChildProcess>;
  /** @returns the exit code */
  stop(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null>;
  /** Kills writers one after the other, each once it has stored something. @returns the exit code of the last one */
  killRepeatedly(killing: Killing): Promise<number | null>;
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
    // Blocks smaller than a deployment permits, so that there are many in a short time.
    NODE_OPTIONS: `--import=${SMALL_BLOCKS}`,
    BLOCK_AGE_MAX_MS: '50',
  };
  const writers = createWriters(environment, prefix);
  const publish = (records: readonly OutgoingRecord[]) =>
    new Promise<void>((resolve, reject) => {
      producer.send(records, (fault) => (fault === null ? resolve() : reject(fault)));
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
    killRepeatedly: (killing) => killRepeatedly({ ...writers, publish }, killing),
    rowsOf: async (text) => parseLines(await query(`${text} FORMAT JSONEachRow`)),
    close: async () => {
      await producer.close();
      await own.close();
    },
  };
}

type Writers = Pick<RealStores, 'startWriter' | 'stop' | 'publish'>;

async function killRepeatedly({ startWriter, stop, publish }: Writers, killing: Killing): Promise<number | null> {
  const { group, kills, settings, batches, stored, all } = killing;
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
  await until('everything is stored', async () => (await stored()) === all, 90_000);
  return await stop(writer, 'SIGTERM');
}

function parseLines<T>(text: string): T[] {
  return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as T]));
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
