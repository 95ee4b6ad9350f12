import { TOPICS } from '@playline/contracts';
import { createEngine, waitForRows } from '../clickhouse.ts';
import { type Bar, type Bench, type Figure, type Row, toRow } from '../figure.ts';
import { openGateway, openPeer, peerEnvironment, type Server } from '../gateway-servers.ts';
import { openKafkaEngine } from '../kafka-engine.ts';
import { postMessages } from '../post.ts';
import type { Measured } from '../processes.ts';
import { openRowWatch, type RowWatch } from '../row-watch.ts';
import { readEnd } from '../topic-end.ts';
import { openWriter } from '../writer-process.ts';

const BATCH_SIZE = 20;
const LOADS = [100, 1_000, 5_000];
/** The load to which the bars apply. The peer gets it too. */
const JUDGED_LOAD = 1_000;
const WARM_UP_S = 2;
const WINDOW_S = 12;
/**
 * The longest time that the writer collects a block, its setting BLOCK_AGE_MAX_MS. This is most of the measured time.
 */
const BLOCK_AGE_MS = 1_000;

/** Time from when a message was due to be posted until a reader saw its row, with 6 partitions and batches of 20. */
export const visible: Figure = {
  name: 'visible',
  async measure(bench) {
    const opened: Measured[] = [];
    const seen = new Map<number, Seen>();
    try {
      opened.push(await openWriter(bench));
      const server = await openGateway(bench);
      opened.push(server);
      const way = { server, topic: `${bench.topicPrefix}${TOPICS.messages.name}`, table: 'events' };
      for (const load of LOADS) seen.set(load, await measureLoad(bench, way, load));
    } finally {
      for (const process of opened) await process.close();
    }
    const peer = await measurePeer(bench);
    return [...seen].flatMap(([load, ours]) => toRows(load, ours, load === JUDGED_LOAD ? peer : null));
  },
};

async function measurePeer(bench: Bench): Promise<Seen> {
  const topic = peerEnvironment(bench).BENCH_TOPIC ?? '';
  const { table, close } = await openKafkaEngine(bench, topic);
  try {
    const server = await openPeer('reference/gateway', bench);
    try {
      return await measureLoad(bench, { server, topic, table }, JUDGED_LOAD);
    } finally {
      await server.close();
    }
  } finally {
    await close();
  }
}

interface Way {
  server: Server;
  topic: string;
  table: string;
}

interface Seen {
  p50Ms: number;
  p99Ms: number;
  partsPerSecond: number;
}

async function measureLoad(bench: Bench, { server, topic, table }: Way, load: number): Promise<Seen> {
  const engine = createEngine(bench);
  const watch = openRowWatch(engine, table);
  try {
    const messages = load * (WARM_UP_S + WINDOW_S);
    const { startMs } = await postMessages(server, bench, { messages, batchSize: BATCH_SIZE, messagesPerSecond: load });
    await waitForRows(engine, { table, rows: await readEnd(bench, topic) });
    // One more poll, so that the last rows are seen too.
    await watch.look();
    const fromMs = Math.ceil(startMs) + WARM_UP_S * 1_000;
    const toMs = fromMs + WINDOW_S * 1_000;
    const delays = await readDelays(bench, watch, { table, fromMs, toMs });
    const at = (q: number) => delays[Math.min(delays.length - 1, Math.floor(delays.length * q))] ?? Number.NaN;
    const parts = await countParts(bench, { table, fromMs, toMs });
    return { p50Ms: at(0.5), p99Ms: at(0.99), partsPerSecond: parts / WINDOW_S };
  } finally {
    await watch.close();
  }
}

interface Span {
  table: string;
  fromMs: number;
  toMs: number;
}

/**
 * Delays in milliseconds, ascending, of every message that was due within the span. A message's own time is the time at
 * which it was due.
 */
async function readDelays(bench: Bench, watch: RowWatch, { table, fromMs, toMs }: Span): Promise<number[]> {
  const time = 'toUnixTimestamp64Milli(event_time)';
  const answer = await createEngine(bench).ask(
    `SELECT kafka_partition, kafka_offset, ${time} FROM ${table} WHERE ${time} >= ${fromMs} AND ${time} < ${toMs} FORMAT TSV`,
  );
  const delays = answer.split('\n').map((line) => {
    const [partition = 0, offset = 0, dueMs = 0] = line.split('\t').map(Number);
    return (watch.seenAtMs(partition, offset) ?? Number.NaN) - dueMs;
  });
  if (delays.some(Number.isNaN)) throw new Error(`a row of ${table} was never seen`);
  return delays.sort((a, b) => a - b);
}

/** Counts parts that inserts have made, not those of merges. */
async function countParts(bench: Bench, { table, fromMs, toMs }: Span): Promise<number> {
  const engine = createEngine(bench);
  await engine.ask('SYSTEM FLUSH LOGS');
  const time = 'toUnixTimestamp64Milli(toDateTime64(event_time_microseconds, 3))';
  const parts = await engine.ask(
    `SELECT count() FROM system.part_log WHERE event_type = 'NewPart' AND database = '${bench.database}'
      AND table = '${table}' AND ${time} >= ${fromMs} AND ${time} < ${toMs}`,
  );
  return Number(parts);
}

function toRows(load: number, ours: Seen, peer: Seen | null): Row[] {
  const names = { figure: 'visible', case: `${load} messages/s`, also: '' };
  const judge = (bar: Bar) => (load === JUDGED_LOAD ? { bars: [bar] } : {});
  const age = { beside: 'floor: age of a block', theirs: BLOCK_AGE_MS };
  const rows = [
    toRow({ ...names, unit: 'p50 ms', ours: ours.p50Ms, ...age }),
    toRow({
      ...names,
      unit: 'p99 ms',
      ours: ours.p99Ms,
      ...age,
      ...judge({ of: 'ours', bound: 'at most', must: 2_000, aim: 1_200 }),
    }),
    toRow({
      ...names,
      unit: 'parts a second',
      ours: ours.partsPerSecond,
      beside: 'partitions of the topic',
      theirs: TOPICS.messages.partitions,
      ...judge({ of: 'ours', bound: 'at most', must: 6 }),
    }),
  ];
  if (peer === null) return rows;
  const beside = "reference + ClickHouse's Kafka engine";
  return [
    ...rows,
    toRow({ ...names, unit: 'p50 ms', ours: ours.p50Ms, beside, theirs: peer.p50Ms }),
    toRow({ ...names, unit: 'p99 ms', ours: ours.p99Ms, beside, theirs: peer.p99Ms }),
    toRow({ ...names, unit: 'parts a second', ours: ours.partsPerSecond, beside, theirs: peer.partsPerSecond }),
  ];
}
