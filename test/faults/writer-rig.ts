import { frameRecord, type MessageRecord, messageRecordCodec, TOPICS } from '@playline/contracts';
import type { LogReader, OutgoingRecord, Producer, StreamRecord } from '@playline/stream';
import { messageRecordOf, openOwnStores, type Stores, until } from '@playline/testkit';
import { openLogAccess } from '../../services/operator/src/test/log-access.ts';
import { createOperate } from '../../services/operator/src/test/operate.ts';
import { SMALL_BLOCKS } from './small-blocks.ts';
import { type GatedProcess, startGatedProcess } from './writer-process.ts';

/** Separate topics and a database in real stores, writers behind gates, and the count of their rows. */
export interface WriterRig {
  readonly stores: Stores;
  readonly prefix: string;
  readonly database: string;
  readonly group: string;
  /** Settings of all processes of the rig. */
  readonly environment: Readonly<Record<string, string>>;
  readonly producer: Producer;
  readonly reader: LogReader;
  /** Full name of the message topic, with the rig's prefix. */
  readonly messages: string;
  toRecord(message: MessageRecord, key?: Buffer | null): OutgoingRecord;
  /** Publishes raw records; resolves when all are acknowledged. */
  publish(records: readonly OutgoingRecord[]): Promise<void>;
  /** Publishes `count` messages of an environment, spread over all partitions. */
  publishMessages(environmentId: string, count: number, changes?: Partial<MessageRecord>): Promise<void>;
  startWriter(settings?: Record<string, string>, file?: string): Promise<GatedProcess>;
  query(sql: string): Promise<string>;
  /** All records of a topic, except aborted ones. */
  read(topic: string): Promise<StreamRecord[]>;
  /** Number of records on the message topic that the group has not committed. */
  lag(): Promise<number>;
  /** Resolves when the group has committed all records of the message topic. */
  caughtUp(deadlineMs?: number): Promise<void>;
  /** Differences between the raw rows of `events` and the log; empty when every record is one row. */
  differences(): Promise<Difference[]>;
  /** Number of published records and of stored raw rows. */
  totals(): Promise<{ records: number; rows: number }>;
  operate(...args: string[]): Promise<{ code: number; lines: string[] }>;
  close(): Promise<void>;
}

/** A partition whose raw rows differ from its published records. */
export interface Difference {
  readonly partition: number;
  readonly published: number;
  readonly rows: number;
  /** Number of offsets without a row. */
  readonly lost: number;
  /** Number of rows minus number of different offsets. */
  readonly doubled: number;
  /** Number of offsets after the last stored one. */
  readonly behind: number;
}

export const EVENT_WRITER = 'services/event-writer/src/main.ts';
export const WRITER_WITHOUT_INTENTS = 'test/faults/writer-without-intents.ts';
/**
 * The producer sends records without a key of one call to one partition, and partitions take turns. This many records
 * go into a call.
 */
const RUN_RECORDS = 20;
/** Long enough for a busy machine. */
const CAUGHT_UP_MAX_MS = 120_000;

export interface WriterRigOptions {
  readonly partitions: number;
  /** Time after which a killed writer is replaced. */
  readonly sessionTimeoutMs: number;
}

export async function openWriterRig(stores: Stores, options: WriterRigOptions): Promise<WriterRig> {
  const base = await openBase(stores, options);
  const { prefix, query, log, group } = base;
  const { producer, reader, publish, read } = log;
  const { start, closeAll } = createProcesses(stores, base.environment);
  const toRecord: WriterRig['toRecord'] = (message, key = null) => {
    const value = frameRecord(base.schemaId, messageRecordCodec.encode(message));
    return { topic: base.messages, key, value };
  };
  const rig: WriterRig = {
    stores,
    prefix,
    group,
    producer,
    reader,
    query,
    publish,
    read,
    toRecord,
    messages: base.messages,
    database: base.database,
    environment: base.environment,
    async publishMessages(environmentId, count, changes = {}) {
      for (let done = 0; done < count; done += RUN_RECORDS) {
        const size = Math.min(RUN_RECORDS, count - done);
        const run = Array.from({ length: size }, () => messageRecordOf('rig', { environmentId, ...changes }));
        await publish(run.map((message) => toRecord(message)));
      }
    },
    startWriter: (settings = {}, file = EVENT_WRITER) => start(file, settings),
    lag: () => log.lag(base.messages, group),
    async caughtUp(deadlineMs = CAUGHT_UP_MAX_MS) {
      await until(
        'the writers have all of the topic',
        async () => (await log.lag(base.messages, group)) === 0,
        deadlineMs,
      );
    },
    differences: () => differencesOf(rig),
    totals: async () => ({
      records: (await reader.bounds(base.messages)).reduce((sum, { end }) => sum + end, 0),
      rows: Number(await query('SELECT count() FROM events')),
    }),
    operate: createOperate(base.environment, prefix),
    async close() {
      await closeAll();
      await log.close();
      await base.drop();
    },
  };
  return rig;
}

/** Topics, tables and clients of one rig. */
async function openBase(stores: Stores, options: WriterRigOptions) {
  const { partitions, sessionTimeoutMs } = options;
  const own = await openOwnStores({ stores, partitions });
  const { prefix, database, query } = own;
  const log = await openLogAccess(stores.kafka);
  // Merges would remove a doubled row before it is counted.
  await query('SYSTEM STOP MERGES events');
  const messages = prefix + TOPICS.messages.name;
  const group = `${prefix}writer`;
  return {
    prefix,
    database,
    messages,
    group,
    query,
    log,
    schemaId: own.schemaIdOf(messages),
    environment: {
      ...own.environment,
      LOG_LEVEL: 'fatal',
      CONSUMER_GROUP: group,
      SESSION_TIMEOUT_MS: String(sessionTimeoutMs),
      BLOCK_AGE_MAX_MS: '50',
      ...SMALL_BLOCKS,
    },
    drop: own.close,
  };
}

function createProcesses(stores: Stores, environment: Record<string, string>) {
  const { kafka: brokers, clickhouse } = stores;
  const processes = new Set<GatedProcess>();
  return {
    async start(file: string, settings: Record<string, string>) {
      const own = { ...environment, ...settings };
      const started = await startGatedProcess({ file, brokers, clickhouse: clickhouse.url, environment: own });
      processes.add(started);
      return started;
    },
    closeAll: async () => void (await Promise.all([...processes].map((each) => each.close()))),
  };
}

/** Compares stored with published offsets: each (partition, offset) must be stored exactly once. */
async function differencesOf({ reader, messages, query }: WriterRig): Promise<Difference[]> {
  const text = await query(
    'SELECT kafka_partition, count(), uniqExact(kafka_offset), min(kafka_offset), max(kafka_offset) + 1 ' +
      'FROM events GROUP BY kafka_partition FORMAT TSV',
  );
  const rows = text === '' ? [] : text.split('\n').map((line) => line.split('\t').map(Number));
  const stored = new Map(rows.map(([partition, ...counts]) => [partition, counts]));
  const bounds = await reader.bounds(messages);
  return bounds.flatMap(({ partition, end }) => {
    const [count = 0, different = 0, first = 0, behind = 0] = stored.get(partition) ?? [];
    const isSame = count === end && different === end && (end === 0 || first === 0) && behind === end;
    return isSame
      ? []
      : [{ partition, published: end, rows: count, lost: end - different, doubled: count - different, behind }];
  });
}
