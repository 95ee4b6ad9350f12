import { type ShownActivity, START_GAP, toHorizon } from '@playline/chain';
import { openChainStore } from '@playline/chain/clickhouse';
import { openRedisWatermarks } from '@playline/chain/redis';
import { TOPICS } from '@playline/contracts';
import { type OutgoingRecord, toPartition } from '@playline/stream';
import { openProducer } from '@playline/stream/kafka';
import {
  openOwnStores,
  openRedisDatabase,
  openServiceProcesses,
  type ServiceProcess,
  testStores,
  until,
} from '@playline/testkit';

const MAIN = new URL('../main.ts', import.meta.url).pathname;
const PARTITIONS = 2;
const NO_FILTERS = { fromIndexedAt: null, toIndexedAt: null, contractAddress: null, type: null };
const PAGE_ROWS = 200;

export const partitionOf = (chain: string): number => toPartition(Buffer.from(chain), PARTITIONS);

/** Opens topics, a database and a Redis for one test, and activity writers that use them. */
export async function openRealWriters() {
  const own = await openOwnStores({ partitions: PARTITIONS });
  const redis = await openRedisDatabase();
  const [activities, tokens] = [own.prefix + TOPICS.activities.name, own.prefix + TOPICS.tokens.name];
  const producer = await openProducer({ brokers: testStores().kafka, clientId: 'test', topics: [activities, tokens] });
  await until('the producer is ready', () => producer.ready());
  // Without merges, duplicates remain visible.
  await own.query('SYSTEM STOP MERGES activities');
  const { CLICKHOUSE_URL: url = '', CLICKHOUSE_USER: user = '', CLICKHOUSE_PASSWORD: password = '' } = own.environment;
  const reader = openChainStore({ url, user, password, database: own.database });
  const watermarks = await openRedisWatermarks({ url: redis.url });
  const writers = openServiceProcesses(MAIN, {
    ...own.environment,
    REDIS_URL: redis.url,
    LOG_LEVEL: 'warn',
    SESSION_TIMEOUT_MS: '2000',
    BLOCK_AGE_MAX_MS: '250',
  });
  const linesOf = async <R>(sql: string): Promise<R[]> => {
    const text = await own.query(`${sql} FORMAT JSONEachRow`);
    return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as R]));
  };
  return {
    activities,
    tokens,
    producer,
    reader,
    watermarks,
    redis,
    linesOf,
    schemaIdOf: own.schemaIdOf,
    /** All writers are in one consumer group. */
    start: (): Promise<ServiceProcess> => writers.start({ CONSUMER_GROUP: `${own.prefix}writer` }),
    kill: () => writers.close(),
    publish: (records: readonly OutgoingRecord[]) =>
      new Promise<void>((resolve, reject) => {
        producer.send(records, (fault) => (fault === null ? resolve() : reject(fault)));
      }),
    /** Every row of a chain, duplicates included, in log order. */
    rowsOf: (chain: string) =>
      linesOf<{ offset: number; us: number }>(
        `SELECT toUInt32(kafka_offset) AS offset, toFloat64(toUnixTimestamp64Micro(updated_at)) AS us ` +
          `FROM activities WHERE chain = '${chain}' ORDER BY offset, us`,
      ),
    follow: (chain: string) => createFollower({ reader, watermarks }, chain),
    close: async () => {
      await writers.close();
      await Promise.all([producer.close(), reader.close(), watermarks.close(), redis.close()]);
      await own.close();
    },
  };
}

export type RealWriters = Awaited<ReturnType<typeof openRealWriters>>;

type Feed = Pick<
  { reader: ReturnType<typeof openChainStore>; watermarks: Awaited<ReturnType<typeof openRedisWatermarks>> },
  'reader' | 'watermarks'
>;

export type Follower = ReturnType<typeof createFollower>;

/** A replica of a chain's feed. */
function createFollower({ reader, watermarks }: Feed, chain: string) {
  const seen: ShownActivity[] = [];
  let gap = START_GAP;
  return {
    seen,
    /** Reads up to the current horizon. */
    catchUp: async () => {
      const watermark = await watermarks.read(partitionOf(chain));
      if (watermark === null) return;
      const query = { chain, filters: NO_FILTERS, direction: 'next', limit: PAGE_ROWS } as const;
      for (;;) {
        const { rows, next } = await reader.readPage({ ...query, gap, horizon: toHorizon(watermark) });
        seen.push(...rows);
        const isOver = rows.length === 0;
        gap = next;
        if (isOver) return;
      }
    },
  };
}
