import { randomBytes } from 'node:crypto';
import { IDENTITY_KEY_BYTES } from '@playline/contracts';
import { openRedisPeople } from '@playline/people/redis';
import { Redis } from 'ioredis';
import type { Bench } from './figure.ts';

/** Number of queued erasures, and of identities of each. Real people have far fewer identities. */
export const HOLDS = 1_000;
export const KEYS_OF_A_HOLD = 300;

/** In microseconds: every entry of the slow log costs Redis a little. */
const SLOWLOG_FROM_US = 300;
const SLOWLOG_ENTRIES_MAX = 20_000;

/** Adds holds of people whom no link touches. @returns also the memory of one held identity */
export async function addHolds(bench: Bench): Promise<{ bytesPerIdentity: number; release(): Promise<void> }> {
  const url = bench.environment.REDIS_URL ?? '';
  const [people, redis] = [await openRedisPeople({ url }), new Redis(url)];
  const memory = async () => Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
  const { environmentId } = bench;
  const names = Array.from({ length: HOLDS }, () => ({ environmentId, erasureId: randomBytes(16) }));
  const before = await memory();
  for (const name of names) {
    const keys = Array.from({ length: KEYS_OF_A_HOLD }, () => randomBytes(IDENTITY_KEY_BYTES));
    await people.guards.putHold({ ...name, keys, cutoffMs: Date.now(), lapsesAtMs: null });
  }
  const bytesPerIdentity = ((await memory()) - before) / (HOLDS * KEYS_OF_A_HOLD);
  const release = async () => {
    for (const name of names) await people.guards.releaseHold(name);
    redis.disconnect();
    await people.close();
  };
  return { bytesPerIdentity, release };
}

/** Watches how long scripts block Redis. @returns a function that returns the longest time in milliseconds */
export async function watchScripts(bench: Bench): Promise<() => Promise<number>> {
  const redis = new Redis(bench.environment.REDIS_URL ?? '');
  const names = ['slowlog-log-slower-than', 'slowlog-max-len'] as const;
  const previous = await Promise.all(
    names.map(async (name) => ((await redis.config('GET', name)) as string[])[1] ?? ''),
  );
  await redis.config('SET', names[0], SLOWLOG_FROM_US);
  await redis.config('SET', names[1], SLOWLOG_ENTRIES_MAX);
  await redis.slowlog('RESET');
  return async () => {
    const entries = (await redis.slowlog('GET', SLOWLOG_ENTRIES_MAX)) as [number, number, number, string[]][];
    for (const [at, name] of names.entries()) await redis.config('SET', name, previous[at] ?? '');
    redis.disconnect();
    const scripts = entries.filter(([, , , [command = '']]) => command.toUpperCase().startsWith('EVAL'));
    return Math.max(SLOWLOG_FROM_US, ...scripts.map(([, , microseconds]) => microseconds)) / 1_000;
  };
}
