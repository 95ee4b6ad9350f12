import { frameRecord, type MessageRecord, messageRecordCodec, TOPICS } from '@playline/contracts';
import type { LogReader, OutgoingRecord } from '@playline/stream';
import { messageRecordOf, openOwnStores, type Stores, until } from '@playline/testkit';
import { openLogAccess } from '../../services/operator/src/test/log-access.ts';
import { createOperate } from '../../services/operator/src/test/operate.ts';
import { SMALL_BLOCKS } from './small-blocks.ts';
import { type ProxiedProcess, startProxiedProcess } from './writer-process.ts';

export type WriterRig = Awaited<ReturnType<typeof openWriterRig>>;

export interface Difference {
  readonly partition: number;
  readonly published: number;
  readonly rows: number;
  readonly lost: number;
  readonly duplicated: number;
  readonly behind: number;
}

export const EVENT_WRITER = 'services/event-writer/src/main.ts';
export const WRITER_WITHOUT_INTENTS = 'test/faults/writer-without-intents.ts';
// The producer sends all keyless records of a call to one partition, which changes with each call.
const RUN_RECORDS = 20;
const CAUGHT_UP_MAX_MS = 120_000;

export interface WriterRigOptions {
  readonly partitions: number;
  readonly sessionTimeoutMs: number;
}

export async function openWriterRig(stores: Stores, options: WriterRigOptions) {
  const { kafka: brokers, clickhouse } = stores;
  const isolatedStores = await openOwnStores({ stores, partitions: options.partitions });
  const { prefix, query } = isolatedStores;
  const log = await openLogAccess(brokers);
  // Merges would remove duplicate rows before they are counted.
  await query('SYSTEM STOP MERGES events');
  const messages = prefix + TOPICS.messages.name;
  const schemaId = isolatedStores.schemaIdOf(messages);
  const group = `${prefix}writer`;
  const environment = {
    ...isolatedStores.environment,
    LOG_LEVEL: 'fatal',
    CONSUMER_GROUP: group,
    SESSION_TIMEOUT_MS: String(options.sessionTimeoutMs),
    BLOCK_AGE_MAX_MS: '50',
    ...SMALL_BLOCKS,
  };
  const processes = new Set<ProxiedProcess>();
  const { reader, publish, read } = log;
  const toRecord = (message: MessageRecord, key: Buffer | null = null): OutgoingRecord => {
    return { topic: messages, key, value: frameRecord(schemaId, messageRecordCodec.encode(message)) };
  };
  const lag = () => log.lag(messages, group);
  return {
    stores,
    group,
    reader,
    query,
    publish,
    read,
    toRecord,
    messages,
    environment,
    lag,
    async publishMessages(environmentId: string, count: number, changes: Partial<MessageRecord> = {}) {
      for (let done = 0; done < count; done += RUN_RECORDS) {
        const size = Math.min(RUN_RECORDS, count - done);
        const run = Array.from({ length: size }, () => messageRecordOf('rig', { environmentId, ...changes }));
        await publish(run.map((message) => toRecord(message)));
      }
    },
    async startWriter(settings: Record<string, string> = {}, file = EVENT_WRITER) {
      const all = { ...environment, ...settings };
      const started = await startProxiedProcess({ file, brokers, clickhouse: clickhouse.url, environment: all });
      processes.add(started);
      return started;
    },
    async caughtUp() {
      await until('the writers have caught up', async () => (await lag()) === 0, CAUGHT_UP_MAX_MS);
    },
    differences: () => differencesOf({ reader, messages, query }),
    totals: async () => ({
      records: (await reader.bounds(messages)).reduce((sum, { end }) => sum + end, 0),
      rows: Number(await query('SELECT count() FROM events')),
    }),
    operate: createOperate(environment, prefix),
    async close() {
      await Promise.all([...processes].map((each) => each.close()));
      await log.close();
      await isolatedStores.close();
    },
  };
}

/** Compares stored and published offsets. Each offset of each partition must be stored exactly once. */
async function differencesOf(rig: {
  reader: LogReader;
  messages: string;
  query(sql: string): Promise<string>;
}): Promise<Difference[]> {
  const { reader, messages, query } = rig;
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
      : [{ partition, published: end, rows: count, lost: end - different, duplicated: count - different, behind }];
  });
}
