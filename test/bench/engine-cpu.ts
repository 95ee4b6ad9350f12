import { setTimeout as delay } from 'node:timers/promises';
import type { Engine } from './clickhouse.ts';
import { LOOK_EVERY_MS, pidListeningOn, watchCpu } from './processes.ts';

/** Long enough for a rate of some hundredths of a core. */
const IDLE_MS = 3_000;

/**
 * CPU seconds of the engine's whole process from now on, without what it spends anyway: its own house-keeping, and our
 * looking at how many rows there are. Otherwise whoever takes longer would pay for that too.
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
