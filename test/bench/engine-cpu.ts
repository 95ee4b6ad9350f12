import { setTimeout as delay } from 'node:timers/promises';
import type { Engine } from './clickhouse.ts';
import { LOOK_EVERY_MS, pidListeningOn, watchCpu } from './processes.ts';

/** Long enough to measure a rate of some hundredths of a core. */
const IDLE_MS = 3_000;

/**
 * Measures CPU seconds of the ClickHouse process from now on, minus its idle rate: background work, and our polling of
 * the number of rows. Otherwise a slower peer would also be charged for those.
 */
export async function watchEngineCpu(engine: Engine, table: string): Promise<() => number> {
  const pid = pidListeningOn(engine.port);
  const startMs = performance.now();
  const idle = watchCpu(pid);
  while (performance.now() - startMs < IDLE_MS) {
    await engine.ask(`SELECT count() FROM ${table}`);
    await delay(LOOK_EVERY_MS);
  }
  const perMs = idle() / (performance.now() - startMs);
  const begunMs = performance.now();
  const spent = watchCpu(pid);
  return () => spent() - perMs * (performance.now() - begunMs);
}
