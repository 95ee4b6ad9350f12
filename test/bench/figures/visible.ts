import { TOPICS } from '@playline/contracts';
import { createEngine, type Engine, waitForRows } from '../clickhouse.ts';
import { atMost, type Bar, type Bench, type Figure, type Row, toRow } from '../figure.ts';
import { readEnd } from '../kafka-client.ts';
import { openKafkaEngine } from '../kafka-engine.ts';
import { postMessages } from '../load.ts';
import { withOpened } from '../opened.ts';
import { quantileOf } from '../quantile.ts';
import { repeatEvery } from '../repeat.ts';
import { peerTopicOf, type Server, startGateway, startPeer, startWriter } from '../services.ts';

const BATCH_SIZE = 20;
const LOADS = [100, 1_000, 5_000];
const PEER_LOAD = 1_000;
const WARM_UP_S = 2;
const WINDOW_S = 12;
/** The writer's BLOCK_AGE_MAX_MS, which dominates the measured delay. */
const BLOCK_AGE_MS = 1_000;
/** Poll interval, which limits the precision. Each poll costs ClickHouse a few milliseconds. */
const POLL_MS = 50;

/** Time from a message's scheduled time until its row is visible, with 6 partitions and batches of 20. */
export const visible: Figure = {
  name: 'visible',
  async measure(bench) {
    const seen = await withOpened(async (keep) => {
      keep(await startWriter(bench));
      const server = keep(await startGateway(bench));
      const path = { server, topic: `${bench.topicPrefix}${TOPICS.messages.name}`, table: 'events' };
      const byLoad = new Map<number, Seen>();
      for (const load of LOADS) byLoad.set(load, await measureLoad(bench, path, load));
      return byLoad;
    });
    const peer = await withOpened(async (keep) => {
      const topic = peerTopicOf(bench);
      const { table } = keep(await openKafkaEngine(bench, topic));
      const server = keep(await startPeer(bench, 'reference/gateway'));
      return measureLoad(bench, { server, topic, table }, PEER_LOAD);
    });
    return [...seen].flatMap(([load, own]) => toRows(load, own, load === PEER_LOAD ? peer : null));
  },
};

type Seen = Awaited<ReturnType<typeof measureLoad>>;

async function measureLoad(
  bench: Bench,
  { server, topic, table }: { server: Server; topic: string; table: string },
  load: number,
) {
  const engine = createEngine(bench);
  const watch = watchRows(engine, table);
  try {
    const messages = load * (WARM_UP_S + WINDOW_S);
    const { startMs } = await postMessages(server, bench, { messages, batchSize: BATCH_SIZE, messagesPerSecond: load });
    await waitForRows(engine, { table, rows: await readEnd(bench, topic) });
    // Ensures that a poll finds the last rows.
    await watch.poll();
    const fromMs = Math.ceil(startMs) + WARM_UP_S * 1_000;
    const range = { table, fromMs, toMs: fromMs + WINDOW_S * 1_000 };
    const delays = await readDelays(engine, watch.seenAtMs, range);
    const parts = await countParts(engine, range);
    return { p50Ms: quantileOf(delays, 0.5), p99Ms: quantileOf(delays, 0.99), partsPerSecond: parts / WINDOW_S };
  } finally {
    await watch.close();
  }
}

/** Records when rows become visible. Within a partition, rows become visible in offset order. */
function watchRows(engine: Engine, table: string) {
  const partitions = new Map<number, { offset: number; atMs: number }[]>();
  const poll = async () => {
    const rows = await engine.queryRows(
      `SELECT kafka_partition, max(kafka_offset) FROM ${table} GROUP BY kafka_partition FORMAT TSV`,
    );
    const atMs = Date.now();
    for (const [partition = 0, offset = 0] of rows.map((row) => row.map(Number))) {
      const seen = partitions.get(partition) ?? [];
      partitions.set(partition, seen);
      if (offset > (seen.at(-1)?.offset ?? -1)) seen.push({ offset, atMs });
    }
  };
  return {
    ...repeatEvery(POLL_MS, poll),
    poll,
    /** @returns the wall-clock time of the first poll that found the row; NaN if no poll did */
    seenAtMs: (partition: number, offset: number) =>
      partitions.get(partition)?.find((seen) => seen.offset >= offset)?.atMs ?? Number.NaN,
  };
}

interface TimeRange {
  table: string;
  fromMs: number;
  toMs: number;
}

// Returns the delays, in milliseconds, of all messages scheduled within the range.
async function readDelays(
  engine: Engine,
  seenAtMs: (partition: number, offset: number) => number,
  { table, fromMs, toMs }: TimeRange,
): Promise<number[]> {
  const time = 'toUnixTimestamp64Milli(event_time)';
  const rows = await engine.queryRows(
    `SELECT kafka_partition, kafka_offset, ${time} FROM ${table} WHERE ${time} >= ${fromMs} AND ${time} < ${toMs} FORMAT TSV`,
  );
  const delays = rows.map((row) => {
    const [partition = 0, offset = 0, dueMs = 0] = row.map(Number);
    return seenAtMs(partition, offset) - dueMs;
  });
  if (delays.some(Number.isNaN)) throw new Error(`no poll found a row of ${table}`);
  return delays;
}

async function countParts(engine: Engine, { table, fromMs, toMs }: TimeRange): Promise<number> {
  await engine.query('SYSTEM FLUSH LOGS');
  const time = 'toUnixTimestamp64Milli(toDateTime64(event_time_microseconds, 3))';
  return engine.queryNumber(
    `SELECT count() FROM system.part_log WHERE event_type = 'NewPart' AND database = currentDatabase()
      AND table = '${table}' AND ${time} >= ${fromMs} AND ${time} < ${toMs}`,
  );
}

const UNITS = { p50Ms: 'p50 ms', p99Ms: 'p99 ms', partsPerSecond: 'parts/s' } as const;

function toRows(load: number, own: Seen, peer: Seen | null): Row[] {
  const toSingleRow = (of: keyof Seen, name: string, peerValue: number, bar?: Bar) =>
    toRow({
      case: `${load} messages/s`,
      unit: UNITS[of],
      value: own[of],
      peer: name,
      peerValue,
      ...(bar && load === PEER_LOAD && { bars: [bar] }),
    });
  const age = 'floor: maximum block age';
  const rows = [
    toSingleRow('p50Ms', age, BLOCK_AGE_MS),
    toSingleRow('p99Ms', age, BLOCK_AGE_MS, atMost('value', 2_000, 1_200)),
    toSingleRow('partsPerSecond', 'partitions of the topic', TOPICS.messages.partitions, atMost('value', 6)),
  ];
  if (peer === null) return rows;
  const keys = Object.keys(UNITS) as (keyof Seen)[];
  return [...rows, ...keys.map((of) => toSingleRow(of, "reference + ClickHouse's Kafka engine", peer[of]))];
}
