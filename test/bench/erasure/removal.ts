import { setTimeout as delay } from 'node:timers/promises';
import { type ErasureRecords, type ErasureRows, removeFromDisk, SWEPT_TABLES } from '@playline/erasure';
import { createEngine, waitForMerges } from '../clickhouse.ts';
import { watchEngineCpu } from '../engine-cpu.ts';
import type { Bench } from '../figure.ts';

/** Replaced files stay eight minutes, which says nothing of the work: here they go at once. */
const QUICK = `old_parts_lifetime = 1, cleanup_delay_period = 1, max_cleanup_delay_period = 1,
  cleanup_delay_period_random_add = 0`;
const LOOK_EVERY_MS = 500;

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

/** @throws Error when a row stands in a file, or not every receipt says that none does */
export async function measureRemoval(
  bench: Bench,
  { rows, records }: { rows: ErasureRows; records: ErasureRecords },
  receipts: number,
): Promise<Removal> {
  const engine = createEngine(bench);
  for (const table of [...SWEPT_TABLES.map(({ name }) => name), 'erasure_targets', 'erasure_found'])
    await engine.ask(`ALTER TABLE ${table} MODIFY SETTING ${QUICK}`);
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
  const removeDeleted = async () => {
    const startMs = performance.now();
    const removedAtMs = await rows.removeDeleted();
    writtenMs = performance.now() - startMs;
    return removedAtMs;
  };
  const findOnDisk = async (batchId: Buffer) => {
    const startMs = performance.now();
    const found = await rows.findOnDisk(batchId);
    lookedMs += performance.now() - startMs;
    return found;
  };
  const pause = async () => {
    await delay(LOOK_EVERY_MS);
    waitedMs += LOOK_EVERY_MS;
  };
  const startMs = performance.now();
  const timed = { ...rows, removeDeleted, findOnDisk };
  const removal = await removeFromDisk({ rows: timed, records, wallClockMs: Date.now, pause });
  return { removal, writtenMs, lookedMs, waitedMs, ms: performance.now() - startMs - waitedMs };
}
