import { setTimeout as delay } from 'node:timers/promises';
import { ERASED_TABLES, type ErasureRecords, type ErasureRows, removeFromDisk } from '@playline/erasure';
import { createEngine, type Engine, waitForMerges } from '../clickhouse.ts';
import { watchEngineCpu } from '../engine-cpu.ts';
import type { Bench } from '../figure.ts';

/** Replaced files stay eight minutes, and up to five more until the engine looks: a constant that says nothing of the work. */
const LOOKED_AFTER = 'cleanup_delay_period = 1, max_cleanup_delay_period = 1, cleanup_delay_period_random_add = 0';
const GONE_AT_ONCE = 'old_parts_lifetime = 1';
const LOOK_EVERY_MS = 1_000;

/** Has the engine look often for files that may go; each table does so from its next look on, so this comes early. */
export const shortenLooks = (engine: Engine): Promise<void> => changeTables(engine, LOOKED_AFTER);

async function changeTables(engine: Engine, settings: string): Promise<void> {
  for (const table of [...ERASED_TABLES.map(({ name }) => name), 'erasure_targets', 'erasure_found'])
    await engine.ask(`ALTER TABLE ${table} MODIFY SETTING ${settings}`);
}

/** Physical removal of everybody who was erased. */
export interface Removal {
  /** Without the wait for replaced files. */
  readonly ms: number;
  /** Of that: parts with deleted rows are written anew; files are looked into for everybody. */
  readonly writtenMs: number;
  readonly lookedMs: number;
  readonly waitedMs: number;
  readonly cpuSeconds: number;
  /** The same again, with nothing to remove. */
  readonly idleMs: number;
}

/** @throws Error when a row is still in a file, or not every receipt states that none is */
export async function measureRemoval(
  bench: Bench,
  { rows, records }: { rows: ErasureRows; records: ErasureRecords },
  receipts: number,
): Promise<Removal> {
  const engine = createEngine(bench);
  await changeTables(engine, GONE_AT_ONCE);
  await waitForMerges(engine, bench.database);
  const cpu = await watchEngineCpu(engine, 'erasure_targets');
  const first = await runRemoval({ rows, records });
  const cpuSeconds = cpu();
  const { marked, foundOnDisk } = first.removal;
  if (foundOnDisk.length > 0) throw new Error(`in files: ${JSON.stringify(foundOnDisk)}`);
  if (marked !== receipts) throw new Error(`${marked} of ${receipts} receipts say that no file holds a row`);
  const again = await runRemoval({ rows, records });
  const { ms, writtenMs, lookedMs, waitedMs } = first;
  return { ms, writtenMs, lookedMs, waitedMs, cpuSeconds, idleMs: again.ms };
}

async function runRemoval({ rows, records }: { rows: ErasureRows; records: ErasureRecords }) {
  let [writtenMs, lookedMs, waitedMs] = [0, 0, 0];
  const timed = async <T>(work: Promise<T>, add: (ms: number) => void): Promise<T> => {
    const startMs = performance.now();
    return work.finally(() => add(performance.now() - startMs));
  };
  const startMs = performance.now();
  const removal = await removeFromDisk({
    rows: {
      ...rows,
      removeDeleted: () =>
        timed(rows.removeDeleted(), (ms) => {
          writtenMs += ms;
        }),
      findOnDisk: (batchId) =>
        timed(rows.findOnDisk(batchId), (ms) => {
          lookedMs += ms;
        }),
    },
    records,
    wallClockMs: Date.now,
    pause: () =>
      timed(delay(LOOK_EVERY_MS), (ms) => {
        waitedMs += ms;
      }),
  });
  return { removal, writtenMs, lookedMs, waitedMs, ms: performance.now() - startMs - waitedMs };
}
