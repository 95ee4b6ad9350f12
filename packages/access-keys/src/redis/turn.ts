import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { KEEP_TURN } from './scripts.ts';

/** Whoever dies in his turn makes the others wait this long. */
const TURN_MS = 5_000;
/** Several chances to prolong a turn before it ends. */
const PROLONG_MS = 1_500;
const POLL_MS = 25;

/**
 * Runs `work` while nobody else holds `key`. A turn is prolonged as long as the work lasts.
 * @throws what the work throws, or Redis when it cannot say whose turn it is
 */
export async function runInTurn<T>(redis: Redis, key: string, work: () => Promise<T>): Promise<T> {
  const me = randomUUID();
  while ((await redis.set(key, me, 'PX', TURN_MS, 'NX')) === null) await delay(POLL_MS);
  const keep = (forMs: number) => redis.eval(KEEP_TURN, 1, key, me, forMs);
  // A turn that cannot be prolonged ends by itself, or with a process that is stopped: whoever changes something finds out
  // by what it compares, and by what stands in the log in front of it.
  const timer = setInterval(() => void keep(TURN_MS).catch(() => {}), PROLONG_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
    await keep(0).catch(() => {});
  }
}
