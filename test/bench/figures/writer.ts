import { TOPICS } from '@playline/contracts';
import { createEngine, waitForMerges, waitForRows } from '../clickhouse.ts';
import { watchEngineCpu } from '../engine-cpu.ts';
import type { Bench, Figure, Row } from '../figure.ts';
import { toRow } from '../figure.ts';
import { type FloorFigure, runFloor } from '../floors/run.ts';
import { peerEnvironment } from '../gateway-servers.ts';
import { openKafkaEngine } from '../kafka-engine.ts';
import { type PreparedRecord, prepareJson, prepareMessages, publish, publishAtOnce } from '../prepared-records.ts';
import { type Measured, memoryPeakMibOf, pidListeningOn, watchCpu } from '../processes.ts';
import { openWriter } from '../writer-process.ts';

const ROWS = 300_000;
/** Warm-up: compiled code and open connections are part of a running service. */
const WARM_UP_ROWS = 20_000;
const MILLION = 1_000_000;

/** CPU-seconds for the same rows. */
interface Spent {
  writer: number;
  /** CPU-seconds of the whole ClickHouse process, until no merge runs. */
  engine: number;
  seconds: number;
}

/** Rows per CPU-second of the writer, and CPU-seconds of ClickHouse: from Kafka to visible rows, exactly-once. */
export const writer: Figure = {
  name: 'writer',
  async measure(bench) {
    const own = await measureOwn(bench);
    const floors = await measureFloors(bench);
    const peer = await measurePeer(bench);
    return toRows(own, { ...floors, peer });
  },
};

async function measureOwn(bench: Bench): Promise<Spent & { memoryPeakMib: number }> {
  const measured = await openWriter(bench);
  try {
    const warmUp = await prepareMessages(bench, WARM_UP_ROWS);
    const records = await prepareMessages(bench, ROWS);
    const spent = await measureRows(bench, { table: 'events', warmUp, records, measured });
    return { ...spent, memoryPeakMib: memoryPeakMibOf(measured.pid) };
  } finally {
    await measured.close();
  }
}

interface Work {
  table: string;
  warmUp: PreparedRecord[];
  records: PreparedRecord[];
  measured?: Measured;
}

async function measureRows(bench: Bench, { table, warmUp, records, measured }: Work): Promise<Spent> {
  const engine = createEngine(bench);
  const ofProcess = measured && { measured };
  await publish(bench, warmUp);
  await waitForRows(engine, { table, rows: warmUp.length, ...ofProcess });
  let spent = { writer: () => 0, engine: () => 0 };
  let start = 0;
  await publishAtOnce(bench, records, async () => {
    await waitForMerges(engine, bench.database);
    const engineSide = await watchEngineCpu(engine, table);
    spent = { writer: measured === undefined ? () => 0 : watchCpu(measured.pid), engine: engineSide };
    start = performance.now();
  });
  await waitForRows(engine, { table, rows: warmUp.length + records.length, ...ofProcess });
  const seconds = (performance.now() - start) / 1000;
  const ofWriter = spent.writer();
  await waitForMerges(engine, bench.database);
  return { writer: ofWriter, engine: spent.engine(), seconds };
}

async function measurePeer(bench: Bench): Promise<Spent> {
  const topic = peerEnvironment(bench).BENCH_TOPIC ?? '';
  const peer = await openKafkaEngine(bench, topic);
  try {
    const [warmUp, records] = [prepareJson(topic, WARM_UP_ROWS), prepareJson(topic, ROWS)];
    return await measureRows(bench, { table: peer.table, warmUp, records });
  } finally {
    await peer.close();
  }
}

interface Floors {
  inserted: FloorFigure;
  insertedEngine: number;
  consumed: FloorFigure;
}

async function measureFloors(bench: Bench): Promise<Floors> {
  const engine = createEngine(bench);
  let engineSide = () => Number.NaN;
  const inserted = await runFloor('insert', { ...bench.environment, EVENTS: String(ROWS) }, () => {
    engineSide = watchCpu(pidListeningOn(engine.port));
  });
  await waitForMerges(engine, bench.database);
  const insertedEngine = engineSide();
  const consumed = await runFloor('consume', {
    ...bench.environment,
    BENCH_TOPIC: `${bench.topicPrefix}${TOPICS.messages.name}`,
    CONSUMER_GROUP: `${bench.topicPrefix}floor`,
    EVENTS: String(ROWS),
  });
  await engine.ask('DROP TABLE events_floor SYNC');
  return { inserted, insertedEngine, consumed };
}

const perMillion = (cpuSeconds: number) => (cpuSeconds / ROWS) * MILLION;

type Own = Awaited<ReturnType<typeof measureOwn>>;

function toRows(own: Own, { inserted, insertedEngine, consumed, peer }: Floors & { peer: Spent }): Row[] {
  const names = { figure: 'writer', case: `${ROWS} rows` };
  const rate = { ...names, unit: 'rows per CPU-second', ours: ROWS / own.writer };
  const [total, peerTotal] = [perMillion(own.writer + own.engine), perMillion(peer.engine)];
  return [
    toRow({
      ...rate,
      beside: 'floor: insert alone',
      theirs: inserted.events / inserted.cpuSeconds,
      bars: [{ of: 'ours', bound: 'at least', must: 100_000 }],
      also: `${Math.round(ROWS / own.seconds)}/s from the first record to the last row`,
    }),
    toRow({ ...rate, beside: 'floor: consume alone', theirs: consumed.events / consumed.cpuSeconds, also: '' }),
    toRow({
      ...names,
      unit: 'engine CPU-seconds per million rows, merges included',
      ours: perMillion(own.engine),
      beside: 'floor: insert alone',
      theirs: perMillion(insertedEngine),
      also: '',
    }),
    toRow({
      ...names,
      unit: 'writer + engine CPU-seconds per million rows, merges included',
      ours: total,
      beside: "ClickHouse's Kafka engine",
      theirs: peerTotal,
      bars: [
        { of: 'ours', bound: 'at most', must: 50, aim: 40 },
        { of: 'ratio', bound: 'at most', must: 0.45, aim: 0.35 },
      ],
      also: `writer ${perMillion(own.writer).toFixed(1)} + engine ${perMillion(own.engine).toFixed(1)}; peer ${Math.round(ROWS / peer.seconds)}/s`,
    }),
    toRow({
      ...names,
      unit: 'peak MiB',
      ours: own.memoryPeakMib,
      beside: 'floor: consume alone',
      theirs: consumed.memoryPeakMib ?? Number.NaN,
      also: '',
    }),
  ];
}
