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

/** Opens topics, a database and a Redis for one test, and starts activity writers that use them. */
export async function openRealWriters() {
  const stores = await openOwnStores({ partitions: PARTITIONS });
  const redis = await openRedisDatabase();
  const [activities, tokens] = [stores.prefix + TOPICS.activities.name, stores.prefix + TOPICS.tokens.name];
  const producer = await openProducer({ brokers: testStores().kafka, clientId: 'test', topics: [activities, tokens] });
  await until('the producer is ready', () => producer.ready());
  // Stops merges, which would remove the duplicates that tests count.
  await stores.query('SYSTEM STOP MERGES activities');
  const {
    CLICKHOUSE_URL: url = '',
    CLICKHOUSE_USER: user = '',
    CLICKHOUSE_PASSWORD: password = '',
  } = stores.environment;
  const reader = openChainStore({ url, user, password, database: stores.database });
  const watermarks = await openRedisWatermarks({ url: redis.url });
  const writers = openServiceProcesses(MAIN, {
    ...stores.environment,
    REDIS_URL: redis.url,
    LOG_LEVEL: 'warn',
    SESSION_TIMEOUT_MS: '2000',
    BLOCK_AGE_MAX_MS: '250',
  });
  const linesOf = async <R>(sql: string): Promise<R[]> => {
    const text = await stores.query(`${sql} FORMAT JSONEachRow`);
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
    schemaIdOf: stores.schemaIdOf,
    /** Starts a writer. All writers share one consumer group. */
    start: (): Promise<ServiceProcess> => writers.start({ CONSUMER_GROUP: `${stores.prefix}writer` }),
    kill: () => writers.close(),
    publish: (records: readonly OutgoingRecord[]) =>
      new Promise<void>((resolve, reject) => {
        producer.send(records, (fault) => (fault === null ? resolve() : reject(fault)));
      }),
    /** Returns all rows for a chain, including duplicates, in log order. */
    rowsOf: (chain: string) =>
      linesOf<{ offset: number; us: number }>(
        `SELECT toUInt32(kafka_offset) AS offset, toFloat64(toUnixTimestamp64Micro(updated_at)) AS us ` +
          `FROM activities WHERE chain = '${chain}' ORDER BY offset, us`,
      ),
    follow: (chain: string) => createFollower({ reader, watermarks }, chain),
    close: async () => {
      await writers.close();
      await Promise.all([producer.close(), reader.close(), watermarks.close(), redis.close()]);
      await stores.close();
    },
  };
}

export type RealWriters = Awaited<ReturnType<typeof openRealWriters>>;

type Feed = Pick<
  { reader: ReturnType<typeof openChainStore>; watermarks: Awaited<ReturnType<typeof openRedisWatermarks>> },
  'reader' | 'watermarks'
>;

export type Follower = ReturnType<typeof createFollower>;

function createFollower({ reader, watermarks }: Feed, chain: string) {
  const seen: ShownActivity[] = [];
  let gap = START_GAP;
  return {
    seen,
    catchUp: async () => {
      const watermark = await watermarks.read(partitionOf(chain));
      if (watermark === null) return;
      const query = { chain, filters: NO_FILTERS, direction: 'next', limit: PAGE_ROWS } as const;
      for (;;) {
        const { rows, next } = await reader.readPage({ ...query, gap, horizon: toHorizon(watermark) });
        seen.push(...rows);
        const isEnd = rows.length === 0;
        gap = next;
        if (isEnd) return;
      }
    },
  };
}
