import { TOPICS } from '@playline/contracts';
import { createEngine, type Engine } from '../clickhouse.ts';
import type { Bench, Figure, Row } from '../figure.ts';
import { toRow } from '../figure.ts';
import { runFloor } from '../floors/run.ts';
import { findFreePort } from '../free-port.ts';
import { prepareMessages, publish } from '../prepared-records.ts';
import { memoryPeakMibOf, openProcess, pidListeningOn, waitFor, waitUntilReady, watchCpu } from '../processes.ts';

const ROWS = 300_000;
/** Compiled code and open connections are part of a running service: they are paid for before the measure begins. */
const WARM_UP_ROWS = 20_000;
/** Thirty times what it takes on a small machine. */
const VISIBLE_MAX_MS = 120_000;
const MILLION = 1_000_000;

/** Rows per CPU-second of the writer, and CPU-seconds of the engine: from Kafka to rows visible, exactly-once on. */
export const writer: Figure = {
  name: 'writer',
  async measure(bench) {
    const engine = createEngine(bench);
    const adminPort = await findFreePort();
    const measured = openProcess('services/event-writer/src/main.ts', {
      ...bench.environment,
      CONSUMER_GROUP: `${bench.topicPrefix}event-writer`,
      ADMIN_PORT: String(adminPort),
    });
    try {
      await waitUntilReady(measured, adminPort);
      await publish(bench, await prepareMessages(bench, WARM_UP_ROWS));
      const records = await prepareMessages(bench, ROWS);
      const visible = (rows: number) => async () => Number(await engine.ask('SELECT count() FROM events')) === rows;
      await waitFor('the warm-up is visible', visible(WARM_UP_ROWS), { measured, maxMs: VISIBLE_MAX_MS });
      const own = watchCpu(measured.pid);
      const engineSide = watchCpu(pidListeningOn(engine.port));
      const start = performance.now();
      await publish(bench, records);
      await waitFor('every row is visible', visible(WARM_UP_ROWS + ROWS), { measured, maxMs: VISIBLE_MAX_MS });
      const seconds = (performance.now() - start) / 1000;
      const cpuSeconds = own();
      await waitForMerges(engine, bench.database);
      return await besideFloors(bench, { cpuSeconds, engineCpuSeconds: engineSide(), seconds, pid: measured.pid });
    } finally {
      await measured.close();
    }
  },
};

/** Merges are the engine's work on these rows too. */
async function waitForMerges(engine: Engine, database: string): Promise<void> {
  const idle = async () =>
    (await engine.ask(`SELECT count() FROM system.merges WHERE database = '${database}'`)) === '0';
  await waitFor('merges have ended', idle, { maxMs: VISIBLE_MAX_MS });
}

interface Seen {
  cpuSeconds: number;
  engineCpuSeconds: number;
  seconds: number;
  pid: number;
}

async function besideFloors(bench: Bench, seen: Seen): Promise<Row[]> {
  const engine = createEngine(bench);
  let engineSide = () => Number.NaN;
  const inserted = await runFloor('insert', { ...bench.environment, EVENTS: String(ROWS) }, () => {
    engineSide = watchCpu(pidListeningOn(engine.port));
  });
  await waitForMerges(engine, bench.database);
  const engineFloor = engineSide();
  const consumed = await runFloor('consume', {
    ...bench.environment,
    BENCH_TOPIC: `${bench.topicPrefix}${TOPICS.messages.name}`,
    CONSUMER_GROUP: `${bench.topicPrefix}floor`,
    EVENTS: String(ROWS),
  });
  const also = `${Math.round(ROWS / seen.seconds)}/s from the first publish to the last row, peak ${memoryPeakMibOf(seen.pid)} MiB`;
  const row = { figure: 'writer', case: `${ROWS} rows`, unit: 'rows per CPU-second', ours: ROWS / seen.cpuSeconds };
  return [
    toRow({ ...row, beside: 'floor: insert alone', theirs: inserted.events / inserted.cpuSeconds, also }),
    toRow({ ...row, beside: 'floor: consume alone', theirs: consumed.events / consumed.cpuSeconds, also: '' }),
    toRow({
      figure: 'writer',
      case: `${ROWS} rows`,
      unit: 'engine CPU-seconds per million rows, merges included',
      ours: (seen.engineCpuSeconds / ROWS) * MILLION,
      beside: 'floor: insert alone',
      theirs: (engineFloor / ROWS) * MILLION,
      also: '',
    }),
  ];
}
