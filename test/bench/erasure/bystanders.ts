import { createEngine } from '../clickhouse.ts';
import { loadOn } from '../load.ts';
import { quantileOf } from '../quantile.ts';
import { repeatEvery } from '../repeat.ts';
import type { Scene } from './erase.ts';

/** Messages that arrive during the erasures: a thousand a second. */
export const INGEST = { batchSize: 20, requestsPerSecond: 50, connections: 25 };
const QUIET_MS = 30_000;
const BUSY_MAX_MS = 3_600_000;
/** Often enough for a p99 within half a minute, and below what ClickHouse can answer. */
const QUERY_EVERY_MS = 100;

interface Quantiles {
  readonly p50: number;
  readonly p99: number;
  readonly answers: number;
}

/** Response times in milliseconds: of batches for clients, and of a query for an analyst. */
export type Waits = Readonly<Record<'gateway' | 'analyst', Quantiles>>;

/** Response times during half a minute just before the work, and during the work. */
export interface Bystanders {
  readonly quiet: Waits;
  readonly busy: Waits;
}

export async function watchBystanders<T>(
  scene: Scene,
  work: () => Promise<T>,
): Promise<{ result: T; bystanders: Bystanders }> {
  const quiet = await watchWaits(scene, { windowMs: QUIET_MS });
  const results: T[] = [];
  const busy = await watchWaits(scene, { windowMs: BUSY_MAX_MS, work: async () => void results.push(await work()) });
  return { result: results[0] as T, bystanders: { quiet, busy } };
}

async function watchWaits(
  { bench, server }: Scene,
  window: { windowMs: number; work?: () => Promise<void> },
): Promise<Waits> {
  const engine = createEngine(bench);
  const latenciesMs: number[] = [];
  const analyst = repeatEvery(QUERY_EVERY_MS, async () => {
    const startMs = performance.now();
    await engine.query(analystQuery(bench.environmentId));
    latenciesMs.push(performance.now() - startMs);
  });
  const load = await loadOn(server, bench, { ...INGEST, ...window }).finally(() => analyst.close());
  const [p50, p99] = [quantileOf(latenciesMs, 0.5), quantileOf(latenciesMs, 0.99)];
  return {
    gateway: { p50: load.p50Ms, p99: load.p99Ms, answers: load.requests },
    analyst: { p50, p99, answers: latenciesMs.length },
  };
}

/** Counts one event per day, and its users, for the last thirty days. */
const analystQuery = (environmentId: string) =>
  `SELECT toDate(event_time) AS day, count(), uniq(identity_key) FROM events FINAL
   WHERE environment_id = '${environmentId}' AND event_name = 'event_7' AND event_time >= now() - INTERVAL 30 DAY
   GROUP BY day ORDER BY day FORMAT TSV
   SETTINGS do_not_merge_across_partitions_select_final = 1`;
