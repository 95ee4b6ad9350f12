import { setTimeout as delay } from 'node:timers/promises';

/**
 * The least time between two runs: 200 questions to a store a second at most, whatever is asked. Whoever waits for what was
 * changed this moment waits no longer.
 */
const PACE_MS = 5;

/** Joins callers to the next run of `work` that has not begun; one runs at a time, `PACE_MS` apart. */
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

/** @throws Error when the work takes longer; it goes on */
export async function within<T>(work: Promise<T>, boundMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const bound = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${boundMs} ms`)), boundMs);
  });
  try {
    return await Promise.race([work, bound]);
  } finally {
    clearTimeout(timer);
  }
}
