import { TOPICS } from '@playline/contracts';
import { createEngine, waitForMerges, waitForRows, watchEngineCpu } from '../clickhouse.ts';
import { atLeast, atMost, type Bench, type Figure, type Row, toRow } from '../figure.ts';
import { runFloor } from '../floors/run.ts';
import { openKafkaEngine } from '../kafka-engine.ts';
import { withOpened } from '../opened.ts';
import {
  type PreparedRecord,
  prepareJson,
  prepareMessages,
  publish,
  publishInTransaction,
} from '../prepared-records.ts';
import { type Measured, memoryPeakMibOf, pidListeningOn, watchCpu } from '../processes.ts';
import { peerTopicOf, startWriter } from '../services.ts';

const ROWS = 300_000;
const WARM_UP_ROWS = 20_000;

interface Spent {
  writer: number;
  engine: number;
  seconds: number;
}

export const writer: Figure = {
  name: 'writer',
  async measure(bench) {
    const own = await withOpened(async (keep) => {
      const measured = keep(await startWriter(bench));
      const warmUp = await prepareMessages(bench, WARM_UP_ROWS);
      const spent = await measureRows(bench, {
        table: 'events',
        warmUp,
        measured,
        records: await prepareMessages(bench, ROWS),
      });
      return { ...spent, memoryPeakMib: memoryPeakMibOf(measured.pid) };
    });
    const floors = await measureFloors(bench);
    const peer = await withOpened(async (keep) => {
      const topic = peerTopicOf(bench);
      const { table } = keep(await openKafkaEngine(bench, topic));
      const [warmUp, records] = [prepareJson(topic, WARM_UP_ROWS), prepareJson(topic, ROWS)];
      return measureRows(bench, { table, warmUp, records });
    });
    return toRows(own, { ...floors, peer });
  },
};

interface Work {
  table: string;
  warmUp: PreparedRecord[];
  records: PreparedRecord[];
  measured?: Measured;
}

async function measureRows(bench: Bench, { table, warmUp, records, measured }: Work): Promise<Spent> {
  const engine = createEngine(bench);
  await publish(bench, warmUp);
  await waitForRows(engine, { table, rows: warmUp.length, measured });
  let spent = { writer: () => 0, engine: () => 0 };
  let startMs = 0;
  await publishInTransaction(bench, records, async () => {
    await waitForMerges(engine, bench.database);
    const engineCpu = await watchEngineCpu(engine, table);
    spent = { writer: measured === undefined ? () => 0 : watchCpu(measured.pid), engine: engineCpu };
    startMs = performance.now();
  });
  await waitForRows(engine, { table, rows: warmUp.length + records.length, measured });
  const seconds = (performance.now() - startMs) / 1000;
  const writerSeconds = spent.writer();
  await waitForMerges(engine, bench.database);
  return { writer: writerSeconds, engine: spent.engine(), seconds };
}

async function measureFloors(bench: Bench) {
  const engine = createEngine(bench);
  let engineCpu = () => Number.NaN;
  const inserted = await runFloor('floors/insert', { ...bench.environment, EVENTS: String(ROWS) }, () => {
    engineCpu = watchCpu(pidListeningOn(engine.port));
  });
  await waitForMerges(engine, bench.database);
  const insertedEngine = engineCpu();
  const consumed = await runFloor('floors/consume', {
    ...bench.environment,
    BENCH_TOPIC: `${bench.topicPrefix}${TOPICS.messages.name}`,
    CONSUMER_GROUP: `${bench.topicPrefix}floor`,
    EVENTS: String(ROWS),
  });
  await engine.query('DROP TABLE events_floor SYNC');
  return { inserted, insertedEngine, consumed };
}

const perMillion = (cpuSeconds: number) => (cpuSeconds / ROWS) * 1e6;

function toRows(
  own: Spent & { memoryPeakMib: number },
  { inserted, insertedEngine, consumed, peer }: Awaited<ReturnType<typeof measureFloors>> & { peer: Spent },
): Row[] {
  const names = { case: `${ROWS} rows` };
  const rate = { ...names, unit: 'rows per CPU-second', value: ROWS / own.writer };
  return [
    toRow({
      ...rate,
      peer: 'floor: insert alone',
      peerValue: inserted.events / inserted.cpuSeconds,
      bars: [atLeast('value', 100_000)],
      notes: `${Math.round(ROWS / own.seconds)}/s from the first record to the last row`,
    }),
    toRow({ ...rate, peer: 'floor: consume alone', peerValue: consumed.events / consumed.cpuSeconds }),
    toRow({
      ...names,
      unit: 'engine CPU-seconds per million rows, merges included',
      value: perMillion(own.engine),
      peer: 'floor: insert alone',
      peerValue: perMillion(insertedEngine),
    }),
    toRow({
      ...names,
      unit: 'writer + engine CPU-seconds per million rows, merges included',
      value: perMillion(own.writer + own.engine),
      peer: "ClickHouse's Kafka engine",
      peerValue: perMillion(peer.engine),
      bars: [atMost('value', 50, 40), atMost('ratio', 0.45, 0.35)],
      notes: `writer ${perMillion(own.writer).toFixed(1)} + engine ${perMillion(own.engine).toFixed(1)}; peer ${Math.round(ROWS / peer.seconds)}/s`,
    }),
    toRow({
      ...names,
      unit: 'peak MiB',
      value: own.memoryPeakMib,
      peer: 'floor: consume alone',
      peerValue: consumed.memoryPeakMib,
    }),
  ];
}
