import { setTimeout as delay } from 'node:timers/promises';

/**
 * Least time between two runs: a store is asked at most 200 times a second. No caller that waits for a recent change
 * waits longer than this.
 */
const PACE_MS = 5;

/**
 * Creates a function that joins its callers to the next run of `work` that has not started yet. One run at a time,
 * `PACE_MS` apart.
 */
export function createJoined(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> = Promise.resolve();
  let next: Promise<void> | null = null;
  let begunAt = Number.NEGATIVE_INFINITY;
  const begin = async () => {
    await running.catch(() => {});
    const waitMs = begunAt + PACE_MS - performance.now();
    if (waitMs > 0) await delay(waitMs);
    begunAt = performance.now();
    next = null;
    running = work();
    return running;
  };
  return () => {
    next ??= begin();
    return next;
  };
}
