import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { KEEP_TURN } from './scripts.ts';

/** If the process whose turn it is dies, the others wait this long. */
const TURN_MS = 5_000;
/** A turn can be prolonged several times before it would end. */
const PROLONG_MS = 1_500;
const POLL_MS = 25;

/**
 * Runs `work` with an exclusive turn on `key`. The turn is prolonged as long as the work lasts.
 * @throws what the work throws, or Redis when it cannot say whose turn it is
 */
export async function runInTurn<T>(redis: Redis, key: string, work: () => Promise<T>): Promise<T> {
  const me = randomUUID();
  while ((await redis.set(key, me, 'PX', TURN_MS, 'NX')) === null) await delay(POLL_MS);
  const keep = (forMs: number) => redis.eval(KEEP_TURN, 1, key, me, forMs);
  // If a turn cannot be prolonged, it ends by itself, also when the process is suspended. Whoever makes a change
  // notices that by comparing what the log has before it.
  const timer = setInterval(() => void keep(TURN_MS).catch(() => {}), PROLONG_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
    await keep(0).catch(() => {});
  }
}
