import { setTimeout as delay } from 'node:timers/promises';
import { ERASED_TABLES, type ErasureRecords, type ErasureRows, removeFromDisk } from '@playline/erasure';
import { createEngine, type Engine, waitForMerges, watchEngineCpu } from '../clickhouse.ts';
import type { Bench } from '../figure.ts';

const POLL_MS = 1_000;

/**
 * Makes ClickHouse clean up often: it keeps replaced files for eight minutes, and up to five more until its next
 * cleanup. Each table applies this only after its next cleanup, so call it early.
 */
export const shortenCleanups = (engine: Engine): Promise<void> =>
  changeTables(engine, 'cleanup_delay_period = 1, max_cleanup_delay_period = 1, cleanup_delay_period_random_add = 0');

async function changeTables(engine: Engine, settings: string): Promise<void> {
  for (const table of [...ERASED_TABLES.map(({ name }) => name), 'erasure_targets', 'erasure_found'])
    await engine.query(`ALTER TABLE ${table} MODIFY SETTING ${settings}`);
}

interface Stores {
  readonly rows: ErasureRows;
  readonly records: ErasureRecords;
}

export interface Removal {
  readonly ms: number;
  /** Part of `ms`: parts with deleted rows are rewritten, and all files are searched for the erased keys. */
  readonly writtenMs: number;
  readonly searchedMs: number;
  readonly waitedMs: number;
  readonly cpuSeconds: number;
  /** Duration of a second run, with nothing to remove. */
  readonly idleMs: number;
}

/** @throws Error when a file still has a row, or when a receipt does not confirm the removal */
export async function measureRemoval(bench: Bench, stores: Stores, receipts: number): Promise<Removal> {
  const engine = createEngine(bench);
  await changeTables(engine, 'old_parts_lifetime = 1');
  await waitForMerges(engine, bench.database);
  const cpu = await watchEngineCpu(engine, 'erasure_targets');
  const { removal, ...first } = await runRemoval(stores);
  const cpuSeconds = cpu();
  const { marked, foundOnDisk } = removal;
  if (foundOnDisk.length > 0) throw new Error(`rows in files: ${JSON.stringify(foundOnDisk)}`);
  if (marked !== receipts) throw new Error(`${marked} of ${receipts} receipts confirm that no file has a row`);
  return { ...first, cpuSeconds, idleMs: (await runRemoval(stores)).ms };
}

async function runRemoval({ rows, records }: Stores) {
  const spent = { writtenMs: 0, searchedMs: 0, waitedMs: 0 };
  const timed = <T>(name: keyof typeof spent, work: Promise<T>): Promise<T> => {
    const startMs = performance.now();
    return work.finally(() => {
      spent[name] += performance.now() - startMs;
    });
  };
  const startMs = performance.now();
  const removal = await removeFromDisk({
    rows: {
      ...rows,
      removeDeleted: () => timed('writtenMs', rows.removeDeleted()),
      findOnDisk: (batchId) => timed('searchedMs', rows.findOnDisk(batchId)),
    },
    records,
    wallClockMs: Date.now,
    pause: () => timed('waitedMs', delay(POLL_MS)),
  });
  return { removal, ...spent, ms: performance.now() - startMs - spent.waitedMs };
}
