import { setTimeout as delay } from 'node:timers/promises';
import { ERASED_TABLES, type ErasureRecords, type ErasureRows, removeFromDisk } from '@playline/erasure';
import { createEngine, type Engine, waitForMerges } from '../clickhouse.ts';
import { watchEngineCpu } from '../engine-cpu.ts';
import type { Bench } from '../figure.ts';

/**
 * ClickHouse keeps replaced files for eight minutes, and up to five more until its next cleanup. This constant says
 * nothing about the work itself.
 */
const LOOKED_AFTER = 'cleanup_delay_period = 1, max_cleanup_delay_period = 1, cleanup_delay_period_random_add = 0';
const GONE_AT_ONCE = 'old_parts_lifetime = 1';
const LOOK_EVERY_MS = 1_000;

/** Makes ClickHouse clean up often. Each table applies this only after its next cleanup, so call it early. */
export const shortenLooks = (engine: Engine): Promise<void> => changeTables(engine, LOOKED_AFTER);

async function changeTables(engine: Engine, settings: string): Promise<void> {
  for (const table of [...ERASED_TABLES.map(({ name }) => name), 'erasure_targets', 'erasure_found'])
    await engine.ask(`ALTER TABLE ${table} MODIFY SETTING ${settings}`);
}

/** Cost of the physical removal of all erased people. */
export interface Removal {
  /** Without the wait for replaced files. */
  readonly ms: number;
  /** Part of `ms`: parts with deleted rows are rewritten, and all files are searched for the erased keys. */
  readonly writtenMs: number;
  readonly lookedMs: number;
  readonly waitedMs: number;
  readonly cpuSeconds: number;
  /** Duration of a second run, with nothing to remove. */
  readonly idleMs: number;
}

/** @throws Error when a file still has a row, or when a receipt does not confirm the removal */
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
