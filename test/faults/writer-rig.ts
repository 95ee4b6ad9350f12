import { randomBytes } from 'node:crypto';
import { frameRecord, type MessageRecord, messageRecordCodec, TOPICS } from '@playline/contracts';
import { applySql } from '@playline/infra/clickhouse';
import { applyTopics, dropTopics } from '@playline/infra/kafka';
import type { LogReader, OutgoingRecord, Producer, StreamRecord } from '@playline/stream';
import * as log from '@playline/stream/kafka';
import { type Stores, until } from '@playline/testkit';
import { createAddresses } from '../../services/operator/src/addresses.ts';
import { runCommand } from '../../services/operator/src/app.ts';
import { createLogCommands } from '../../services/operator/src/commands/log-commands.ts';
import { configSchema } from '../../services/operator/src/config.ts';
import { messageOf } from '../../services/operator/src/test/log-fixture.ts';
import { type GatedProcess, startGatedProcess } from './writer-process.ts';

/** Topics and a database of their own in real stores, writers behind gates, and the count of what they stored. */
export interface WriterRig {
  readonly stores: Stores;
  readonly prefix: string;
  readonly database: string;
  readonly group: string;
  /** What every process of it is told. */
  readonly environment: Readonly<Record<string, string>>;
  readonly producer: Producer;
  readonly reader: LogReader;
  /** `audience.messages` under this rig's prefix. */
  readonly messages: string;
  toRecord(message: MessageRecord, key?: Buffer | null): OutgoingRecord;
  /** Publishes raw records; resolves when all are acknowledged. */
  publish(records: readonly OutgoingRecord[]): Promise<void>;
  /** Publishes `count` messages of an environment, spread over all partitions. */
  publishMessages(environmentId: string, count: number, changes?: Partial<MessageRecord>): Promise<void>;
  startWriter(settings?: Record<string, string>, file?: string): Promise<GatedProcess>;
  query(sql: string): Promise<string>;
  /** Everything of a topic that is not undone. */
  read(topic: string): Promise<StreamRecord[]>;
  /** Records of the topic of messages that the group has not committed. */
  lag(): Promise<number>;
  /** Resolves when the group has committed all that the topic of messages holds. */
  caughtUp(deadlineMs?: number): Promise<void>;
  /** What is wrong with the raw rows of `events`, compared with the log; empty when every record is one row. */
  differences(): Promise<Difference[]>;
  /** Records published, and raw rows stored. */
  totals(): Promise<{ records: number; rows: number }>;
  operate(...args: string[]): Promise<{ code: number; lines: string[] }>;
  close(): Promise<void>;
}

/** A partition whose raw rows are not the records published. */
export interface Difference {
  readonly partition: number;
  readonly published: number;
  readonly rows: number;
  /** Offsets without a row. */
  readonly lost: number;
  /** Rows more than offsets. */
  readonly doubled: number;
  /** Behind the last offset that is stored. */
  readonly behind: number;
}

export const EVENT_WRITER = 'services/event-writer/src/main.ts';
export const WRITER_WITHOUT_INTENTS = 'test/faults/writer-without-intents.ts';
/** Records without a key stay together in one call and take partitions in turn: this many a call. */
const RUN_RECORDS = 20;
/** Long enough for a machine that is busy with everything else. */
const CAUGHT_UP_MAX_MS = 120_000;

export interface WriterRigOptions {
  readonly partitions: number;
  /** A killed writer is replaced after it. */
  readonly sessionTimeoutMs: number;
}

export async function openWriterRig(stores: Stores, options: WriterRigOptions): Promise<WriterRig> {
  const base = await openBase(stores, options);
  const { prefix, query, producer, reader, group } = base;
  const { start, closeAll } = createProcesses(stores, base.environment);
  const publish: WriterRig['publish'] = (records) =>
    new Promise((resolve, reject) => {
      producer.send(records, (fault) => (fault === null ? resolve() : reject(fault)));
    });
  const toRecord: WriterRig['toRecord'] = (message, key = null) => {
    const value = frameRecord(base.schemaId, messageRecordCodec.encode(message));
    return { topic: base.messages, key, value };
  };
  const rig: WriterRig = {
    ...{ stores, prefix, group, producer, reader, query, publish, toRecord },
    messages: base.messages,
    database: base.database,
    environment: base.environment,
    async publishMessages(environmentId, count, changes = {}) {
      for (let done = 0; done < count; done += RUN_RECORDS) {
        const size = Math.min(RUN_RECORDS, count - done);
        const run = Array.from({ length: size }, () => messageOf('rig', { environmentId, ...changes }));
        await publish(run.map((message) => toRecord(message)));
      }
    },
    startWriter: (settings = {}, file = EVENT_WRITER) => start(file, settings),
    read: (topic) => readTopic(reader, topic),
    lag: () => lagOf(rig),
    async caughtUp(deadlineMs = CAUGHT_UP_MAX_MS) {
      await until('the writers have all of the topic', async () => (await lagOf(rig)) === 0, deadlineMs);
    },
    differences: () => differencesOf(rig),
    totals: async () => ({
      records: (await reader.bounds(base.messages)).reduce((sum, { end }) => sum + end, 0),
      rows: Number(await query('SELECT count() FROM events')),
    }),
    operate: createOperate(base.environment, prefix),
    async close() {
      await closeAll();
      await Promise.all([producer.close(), reader.close()]);
      await base.drop();
    },
  };
  return rig;
}

/** Topics, tables and clients of one rig. */
async function openBase(stores: Stores, options: WriterRigOptions) {
  const name = randomBytes(6).toString('hex');
  const [prefix, database] = [`test-${name}.`, `playline_test_${name}`];
  const target = { brokers: stores.kafka, registry: stores.registry, prefix };
  const applied = await applyTopics({ ...target, partitions: options.partitions });
  await applySql({ ...stores.clickhouse, database });
  const producer = await log.openProducer({ brokers: stores.kafka, clientId: 'test' });
  await until('the producer is ready', () => producer.ready());
  const query = createQuery(stores, database);
  // Merges would fold a doubled row away before it is counted.
  await query('SYSTEM STOP MERGES events');
  const messages = prefix + TOPICS.messages.name;
  const group = `${prefix}writer`;
  return {
    ...{ prefix, database, messages, group, producer, query },
    reader: log.openLogReader({ brokers: stores.kafka, clientId: 'test' }),
    schemaId: applied.schemas.find(({ subject }) => subject === `${messages}-value`)!.id,
    environment: environmentOf(stores, { prefix, database, group, ...options }),
    drop: async () => {
      await query(`DROP DATABASE ${database} SYNC`);
      await dropTopics(target);
    },
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

function environmentOf(
  stores: Stores,
  own: { prefix: string; database: string; group: string; sessionTimeoutMs: number },
): Record<string, string> {
  return {
    LOG_LEVEL: 'fatal',
    KAFKA_BROKERS: stores.kafka.join(','),
    SCHEMA_REGISTRY_URL: stores.registry,
    CLICKHOUSE_URL: stores.clickhouse.url,
    CLICKHOUSE_USER: stores.clickhouse.user,
    CLICKHOUSE_PASSWORD: stores.clickhouse.password,
    CLICKHOUSE_DATABASE: own.database,
    TOPIC_PREFIX: own.prefix,
    CONSUMER_GROUP: own.group,
    SESSION_TIMEOUT_MS: String(own.sessionTimeoutMs),
    BLOCK_AGE_MAX_MS: '50',
  };
}

function createQuery(stores: Stores, database: string): WriterRig['query'] {
  const { url, user, password } = stores.clickhouse;
  const headers = { 'x-clickhouse-user': user, 'x-clickhouse-key': password, 'x-clickhouse-database': database };
  return async (body) => {
    const answer = await fetch(url, { method: 'POST', headers, body });
    const text = await answer.text();
    if (!answer.ok) throw new Error(text);
    return text.trim();
  };
}

/** Commands of the operator as they are, on the rig's stores. */
function createOperate(environment: Record<string, string>, prefix: string): WriterRig['operate'] {
  const addresses = createAddresses(configSchema.parse(environment), '/nowhere');
  return async (...args) => {
    const lines: string[] = [];
    const { signal } = new AbortController();
    const commands = createLogCommands(log, { addresses, topicPrefix: prefix, stop: signal });
    const code = await runCommand(commands, args, {
      result: (line) => void lines.push(line),
      progress: () => {},
      isInteractive: false,
    });
    return { code, lines };
  };
}

async function readTopic(reader: LogReader, topic: string): Promise<StreamRecord[]> {
  const records: StreamRecord[] = [];
  for (const bounds of await reader.bounds(topic))
    for await (const record of reader.read({ topic, ...bounds })) records.push(record);
  return records;
}

async function lagOf({ reader, group, messages }: WriterRig): Promise<number> {
  const committed = await reader.committed(group, messages);
  const bounds = await reader.bounds(messages);
  return bounds.reduce((sum, { partition, end }) => sum + Math.max(0, end - (committed.get(partition) ?? 0)), 0);
}

/** The set of (partition, offset) that is stored must be the set that was published, each once. */
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
