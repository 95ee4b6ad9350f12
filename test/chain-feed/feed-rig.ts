import { randomBytes } from 'node:crypto';
import type { ShownChain } from '@playline/chain';
import { type ActivityRecord, TOPICS } from '@playline/contracts';
import { freePorts } from '@playline/infra/ports';
import { type OutgoingRecord, toPartition } from '@playline/stream';
import { openOwnStores, openRedisDatabase, type Stores, until } from '@playline/testkit';
import { activityValue } from '../../services/activity-writer/src/test/records.ts';
import { type LogAccess, openLogAccess } from '../../services/operator/src/test/log-access.ts';
import { SMALL_BLOCKS } from '../faults/small-blocks.ts';
import { type ProxiedProcess, startProxiedProcess } from '../faults/writer-process.ts';
import { openWatermarkWatch, type WatermarkWatch } from './watermark-watch.ts';

export interface FeedChain extends ShownChain {
  readonly partition: number;
}

export interface Api {
  readonly url: string;
  readonly process: ProxiedProcess;
  /** Number of pages with a stale watermark. `lastCount` is the last fetched value. */
  readonly stalePages: { readonly lastCount: number; fetch(): Promise<number> };
}

export interface StoredVersion {
  readonly chain: string;
  readonly id: string;
  readonly us: number;
  readonly partition: number;
  readonly offset: number;
}

export interface FeedRig {
  /** Six chains. The three partitions contain three, two and one of them. */
  readonly chains: readonly FeedChain[];
  readonly activities: string;
  readonly brokers: readonly string[];
  readonly log: LogAccess;
  readonly watermarks: WatermarkWatch;
  toOutgoing(record: ActivityRecord): OutgoingRecord & { headers: Record<string, string> };
  startWriter(rowsMax: number): Promise<ProxiedProcess>;
  startApi(): Promise<Api>;
  query(sql: string): Promise<string>;
  versions(): Promise<StoredVersion[]>;
  lag(): Promise<number>;
  /** Waits until the writers have committed all records that are in the log at the time of the call. */
  untilCaughtUp(): Promise<void>;
  close(): Promise<void>;
}

const PARTITIONS = 3;
const CHAINS_PER_PARTITION: readonly number[] = [3, 2, 1];
/** As short as possible, because every kill waits this long, but long enough for heartbeats on a busy machine. */
export const SESSION_TIMEOUT_MS = 1_500;
const WRITER = 'services/activity-writer/src/main.ts';
const API = 'services/chain-api/src/main.ts';
export const WAIT_MAX_MS = 120_000;

export async function openFeedRig(stores: Stores): Promise<FeedRig> {
  const testStores = await openOwnStores({ stores, partitions: PARTITIONS });
  const redis = await openRedisDatabase(stores.redis);
  const [log, watermarks] = [await openLogAccess(stores.kafka), await openWatermarkWatch(redis)];
  // Merges would remove a duplicate row before it is counted.
  await testStores.query('SYSTEM STOP MERGES activities');
  const activities = testStores.prefix + TOPICS.activities.name;
  const group = `${testStores.prefix}activity-writer`;
  const schemaId = testStores.schemaIdOf(activities);
  const chains = chooseChains();
  const environment = { ...testStores.environment, REDIS_URL: redis.url, LOG_LEVEL: 'fatal' };
  const processes = createProcesses(stores, { environment, group, chains });
  return {
    chains,
    activities,
    brokers: stores.kafka,
    log,
    watermarks,
    query: testStores.query,
    toOutgoing: (record) => ({
      topic: activities,
      key: Buffer.from(record.chain),
      value: activityValue(schemaId, record),
      headers: {},
    }),
    startWriter: processes.startWriter,
    startApi: processes.startApi,
    versions: async () => toVersions(await testStores.query(VERSIONS)),
    lag: () => log.lag(activities, group),
    async untilCaughtUp() {
      const ends = await log.reader.bounds(activities);
      await until(
        'the writers have caught up',
        async () => {
          const committed = await log.reader.committed(group, activities);
          return ends.every(({ partition, end }) => end === 0 || (committed.get(partition) ?? 0) >= end);
        },
        WAIT_MAX_MS,
      );
    },
    async close() {
      await processes.close();
      await Promise.all([log.close(), watermarks.close()]);
      await redis.close();
      await testStores.close();
    },
  };
}

function chooseChains(): FeedChain[] {
  const chosen: FeedChain[] = [];
  for (let number = 1; chosen.length < CHAINS_PER_PARTITION.reduce((sum, count) => sum + count); number++) {
    const name = `test-chain-${number}`;
    const partition = toPartition(Buffer.from(name), PARTITIONS);
    const taken = chosen.filter((chain) => chain.partition === partition).length;
    if (taken < CHAINS_PER_PARTITION[partition]!) chosen.push({ name, id: `eip155:${number}`, partition });
  }
  return chosen;
}

const VERSIONS =
  'SELECT chain, toString(id), toUnixTimestamp64Micro(updated_at), kafka_partition, kafka_offset FROM activities ' +
  'ORDER BY kafka_partition, kafka_offset FORMAT TSV';

function toVersions(text: string): StoredVersion[] {
  return text.split('\n').flatMap((line) => {
    const [chain = '', id = '', us, partition, offset] = line.split('\t');
    return line === '' ? [] : [{ chain, id, us: Number(us), partition: Number(partition), offset: Number(offset) }];
  });
}

interface ProcessSettings {
  readonly environment: Readonly<Record<string, string>>;
  readonly group: string;
  readonly chains: readonly FeedChain[];
}

function createProcesses(stores: Stores, { environment, group, chains }: ProcessSettings) {
  const started = new Set<ProxiedProcess>();
  const start = async (file: string, settings: Readonly<Record<string, string>>) => {
    const process = await startProxiedProcess({
      file,
      brokers: stores.kafka,
      clickhouse: stores.clickhouse.url,
      environment: { ...environment, ...settings },
    });
    started.add(process);
    return process;
  };
  // All APIs sign with the same key, so a reader can continue with any API.
  const cursorKeys = `1=${randomBytes(32).toString('hex')}`;
  return {
    startWriter: (rowsMax: number) =>
      start(WRITER, {
        ...SMALL_BLOCKS,
        CONSUMER_GROUP: group,
        SESSION_TIMEOUT_MS: String(SESSION_TIMEOUT_MS),
        BLOCK_ROWS_MAX: String(rowsMax),
        BLOCK_AGE_MAX_MS: '50',
      }),
    async startApi(): Promise<Api> {
      const [port] = await freePorts(1);
      const process = await start(API, {
        HTTP_PORT: String(port),
        ACTIVITY_PARTITIONS: String(PARTITIONS),
        RATE_LIMIT_CALLS: '1000000',
        CHAINS: JSON.stringify(chains.map(({ name, id }) => ({ name, id }))),
        CURSOR_KEYS: cursorKeys,
      });
      const stalePages = {
        lastCount: 0,
        async fetch() {
          const [, count = '0'] =
            /^playline_chain_api_stale_horizon_pages_total.* (\d+)$/m.exec(await process.metrics()) ?? [];
          stalePages.lastCount = Number(count);
          return stalePages.lastCount;
        },
      };
      return { url: `http://127.0.0.1:${port}`, process, stalePages };
    },
    close: async () => void (await Promise.all([...started].map((each) => each.close()))),
  };
}
