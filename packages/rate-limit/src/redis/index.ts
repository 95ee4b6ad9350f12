import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRedisClientSetup, type RedisClientOptions } from '@playline/errors';
import { Redis, ReplyError } from 'ioredis';
import type { SharedBalances } from '../balances.ts';

export interface RedisBalancesOptions extends RedisClientOptions {
  /** Put before every key; tests use it, a deployment leaves it empty. */
  namespace?: string;
}

export interface RedisBalances extends SharedBalances {
  close(): Promise<void>;
}

/**
 * If Redis sends nothing for this long while a command waits, the connection counts as broken and a new one is opened.
 */
const SILENCE_MAX_MS = 1000;
/**
 * Redis on the same network connects in a millisecond; half a second is an outage. A new attempt every 250 ms and the
 * limiter's own interval make the limit shared again within half a second of Redis being back.
 */
const WAITS = { connectMaxMs: 500, reconnectMaxMs: 250 };
const US_PER_MS = 1000;

const SCRIPT = readFileSync(new URL('charge.lua', import.meta.url), 'utf8');
const SCRIPT_SHA = createHash('sha1').update(SCRIPT).digest('hex');

/**
 * Opens buckets in Redis. The key `rate:<id>` holds the microsecond, by the clock of Redis, at which that bucket is
 * full, and expires then. It connects in the background. Until it is connected, and while Redis is away, every charge
 * fails at once.
 */
export function openRedisBalances(options: RedisBalancesOptions): RedisBalances {
  const { url, namespace = '' } = options;
  const setup = createRedisClientSetup(options, WAITS);
  const redis = new Redis(url, { ...setup.options, socketTimeout: SILENCE_MAX_MS });
  redis.on('error', setup.onError);

  const run = async (args: (string | number)[]) => {
    try {
      return await redis.call('EVALSHA', [SCRIPT_SHA, ...args]);
    } catch (error) {
      if (!(error instanceof ReplyError) || !(error as Error).message.startsWith('NOSCRIPT')) throw error;
      return redis.call('EVAL', [SCRIPT, ...args]);
    }
  };

  return {
    charge: async (charges) => {
      const keys = charges.map(({ id }) => `${namespace}rate:${id}`);
      const costs = charges.map(({ costMs }) => Math.round(costMs * US_PER_MS));
      const backlogsUs = (await run([keys.length, ...keys, ...costs])) as number[];
      return backlogsUs.map((backlogUs) => backlogUs / US_PER_MS);
    },
    close: async () => redis.disconnect(),
  };
}
