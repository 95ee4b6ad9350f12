import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { createEngine } from '../clickhouse.ts';
import { atLeast, type Bench, type Figure, type Row, toRow } from '../figure.ts';
import { emptyTables, openBench } from '../open-bench.ts';
import { withOpened } from '../opened.ts';
import { prepareMessages, publish } from '../prepared-records.ts';
import { waitFor } from '../processes.ts';
import { mediansOf } from '../quantile.ts';
import { startWriter } from '../services.ts';

const ROWS = 10_000_000;
/** Records in memory at a time. */
const PORTION = 250_000;
/** Share of the rows that is stored before the measurement begins, while writers start and code is compiled. */
const WARM_UP_SHARE = 0.05;
const DRAIN_MAX_MS = 1_200_000;

/** Each number of writers is measured once at each position, because merges of earlier rows differ between runs. */
const ROUNDS = [
  [1, 2, 4],
  [2, 4, 1],
  [4, 1, 2],
] as const;

interface Drained {
  readonly writers: number;
  /** Rows per second. */
  readonly rate: number;
  /** CPU time of all processes of this machine, in seconds per row. */
  readonly cpuPerRow: number;
}

// The rate at which several writers process a backlog. They share the cores with Kafka and ClickHouse, so the floor is
// the rate of one writer times their number, but at most what the cores can do at the CPU time per row of one writer.
export const drain: Figure = {
  name: 'drain',
  optional: true,
  async measure({ stores, scale }) {
    const count = Math.ceil(ROWS * scale);
    const { bench, close } = await openBench(stores);
    try {
      for (let published = 0; published < count; published += PORTION)
        await publish(bench, await prepareMessages(bench, Math.min(PORTION, count - published)));
      const drained: Drained[] = [];
      for (const writers of ROUNDS.flat()) {
        drained.push(await measure(bench, { writers, count, group: `drain-${drained.length}` }));
        await emptyTables(bench);
      }
      return toRows(drained, count);
    } finally {
      await close();
    }
  },
};

function toRows(drained: readonly Drained[], count: number): Row[] {
  const of = (writers: number) => drained.filter((each) => each.writers === writers);
  const alone = mediansOf(of(1));
  const coresMax = availableParallelism() / alone.cpuPerRow;
  return ROUNDS[0].map((writers) => {
    const { rate, cpuPerRow } = mediansOf(of(writers));
    const rates = of(writers).map((each) => Math.round(each.rate));
    return toRow({
      case: `backlog of ${count} messages, writers: ${writers}`,
      unit: 'rows per second',
      value: rate,
      peer: 'floor: one writer times their number, up to the cores there are',
      peerValue: Math.min(writers * alone.rate, coresMax),
      ...(writers > 1 && { bars: [atLeast('ratio', 0.8)] }),
      notes: `median of ${rates.join(', ')}; ${(cpuPerRow * 1e6).toFixed(1)} CPU-seconds of all processes per million rows`,
    });
  });
}

/** CPU time that all processes of this machine have used, in seconds. */
function machineCpuSeconds(): number {
  const [, ...ticks] = (readFileSync('/proc/stat', 'utf8').split('\n')[0] ?? '').split(/\s+/).map(Number);
  const [user = 0, nice = 0, system = 0, , , irq = 0, softIrq = 0] = ticks;
  return (user + nice + system + irq + softIrq) / 100;
}

async function measure(bench: Bench, run: { writers: number; count: number; group: string }): Promise<Drained> {
  const { writers, count } = run;
  const engine = createEngine(bench);
  const stored = () => engine.queryNumber('SELECT count() FROM events');
  return withOpened(async (keep) => {
    const start = () => startWriter(bench, { CONSUMER_GROUP: `${bench.topicPrefix}${run.group}` });
    await Promise.all(Array.from({ length: writers }, async () => keep(await start())));
    let firstRows = 0;
    const isWarm = async () => {
      firstRows = await stored();
      return firstRows >= count * WARM_UP_SHARE;
    };
    await waitFor('the writers are warm', isWarm, { maxMs: DRAIN_MAX_MS });
    const [startMs, cpu] = [performance.now(), machineCpuSeconds()];
    await waitFor('all rows are stored', async () => (await stored()) === count, { maxMs: DRAIN_MAX_MS });
    const rows = count - firstRows;
    return {
      writers,
      rate: rows / ((performance.now() - startMs) / 1000),
      cpuPerRow: (machineCpuSeconds() - cpu) / rows,
    };
  });
}
