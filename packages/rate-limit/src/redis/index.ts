import { readFileSync } from 'node:fs';
import { settleAll } from '@playline/stores';
import { openRedis, type RedisAdapterOptions, runScript } from '@playline/stores/redis';
import type { Charge, SharedBalances } from '../shared-limiter.ts';

export interface RedisBalances extends SharedBalances {
  close(): Promise<void>;
}

/** Connecting to Redis on the same network takes a millisecond. */
const LIMITS = { connectMaxMs: 500, reconnectMaxMs: 250, silenceMaxMs: 1000 };
const US_PER_MS = 1000;

const SCRIPT = readFileSync(new URL('charge.lua', import.meta.url), 'utf8');

/**
 * Buckets in Redis. `rate:<id>` contains the time, by Redis's clock, at which the bucket will be full, and expires at
 * that time. Charges fail immediately while Redis is unavailable.
 */
export function openRedisBalances(options: RedisAdapterOptions): RedisBalances {
  const { redis, close } = openRedis(options, LIMITS);
  const prefix = `${options.namespace ?? ''}rate:`;
  const run = async (charges: readonly Charge[]) => {
    const keys = charges.map(({ id }) => prefix + id);
    const costs = charges.map(({ costMs }) => Math.round(costMs * US_PER_MS));
    return (await runScript(redis, { script: SCRIPT, keys, args: costs })) as number[];
  };
  // In a cluster, each bucket is in a different slot.
  const isDivided = (options.cells ?? 0) > 0;
  return {
    charge: async (charges) => {
      const calls = isDivided ? charges.map((charge) => run([charge])) : [run(charges)];
      const backlogsUs = (await settleAll(calls)).flat();
      return backlogsUs.map((backlogUs) => backlogUs / US_PER_MS);
    },
    close,
  };
}
