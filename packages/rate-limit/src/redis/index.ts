import { readFileSync } from 'node:fs';
import { openRedis, type RedisAdapterOptions, runScript } from '@playline/stores/redis';
import type { SharedBalances } from '../shared-limiter.ts';

export interface RedisBalances extends SharedBalances {
  close(): Promise<void>;
}

/**
 * Redis on the same network connects in a millisecond; half a second is an outage. A new attempt every 250 ms and the
 * limiter's own interval make the limit shared again within half a second of Redis being back.
 */
const LIMITS = { connectMaxMs: 500, reconnectMaxMs: 250, silenceMaxMs: 1000 };
const US_PER_MS = 1000;

const SCRIPT = readFileSync(new URL('charge.lua', import.meta.url), 'utf8');

/**
 * Opens buckets in Redis. The key `rate:<id>` holds the microsecond, by the clock of Redis, at which that bucket is
 * full, and expires then. It connects in the background. Until it is connected, and while Redis is away, every charge
 * fails at once.
 */
export function openRedisBalances(options: RedisAdapterOptions): RedisBalances {
  const { redis, close } = openRedis(options, LIMITS);
  const prefix = `${options.namespace ?? ''}rate:`;
  return {
    charge: async (charges) => {
      const keys = charges.map(({ id }) => prefix + id);
      const costs = charges.map(({ costMs }) => Math.round(costMs * US_PER_MS));
      const backlogsUs = (await runScript(redis, { script: SCRIPT, keys, args: costs })) as number[];
      return backlogsUs.map((backlogUs) => backlogUs / US_PER_MS);
    },
    close,
  };
}
