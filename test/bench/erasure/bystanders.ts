import { createEngine } from '../clickhouse.ts';
import { loadOn } from '../gateway-servers.ts';
import { quantileOf } from '../quantile.ts';
import { openAnalyst } from './analyst.ts';
import type { Scene } from './erase.ts';

/** Messages that arrive during the erasures: a thousand a second. */
export const INGEST = { batchSize: 20, requestsPerSecond: 50, connections: 25 };
const QUIET_MS = 30_000;
/** Longer than any measurement. */
const BUSY_MAX_MS = 3_600_000;

/** Response times in milliseconds: of batches for clients, and of a query for an analyst. */
export interface Waits {
  readonly gateway: Quantiles;
  readonly analyst: Quantiles;
}

export interface Quantiles {
  readonly p50: number;
  readonly p99: number;
  readonly answers: number;
}

/** Response times during half a minute just before the work, and during the work. */
export interface Bystanders {
  readonly quiet: Waits;
  readonly busy: Waits;
}

/** Sends messages and queries, first without the work and then during it. */
export async function watchBystanders<T>(
  scene: Pick<Scene, 'bench' | 'stack'>,
  work: () => Promise<T>,
): Promise<{ done: T; bystanders: Bystanders }> {
  const quiet = await watchWaits(scene, { windowMs: QUIET_MS });
  let done: { value: T } | null = null;
  const busy = await watchWaits(scene, {
    windowMs: BUSY_MAX_MS,
    work: async () => {
      done = { value: await work() };
    },
  });
  if (done === null) throw new Error('the work was not done');
  return { done: (done as { value: T }).value, bystanders: { quiet, busy } };
}

async function watchWaits(
  { bench, stack }: Pick<Scene, 'bench' | 'stack'>,
  window: { windowMs: number; work?: () => Promise<void> },
): Promise<Waits> {
  const analyst = openAnalyst(createEngine(bench), bench);
  try {
    const { p50Ms: p50, p99Ms: p99, requests: answers } = await loadOn(stack.server, bench, { ...INGEST, ...window });
    const asked = await analyst.close();
    const [median, slow] = [quantileOf(asked, 0.5), quantileOf(asked, 0.99)];
    return { gateway: { p50, p99, answers }, analyst: { p50: median, p99: slow, answers: asked.length } };
  } finally {
    await analyst.close();
  }
}
