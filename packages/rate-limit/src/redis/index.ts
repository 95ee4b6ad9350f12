import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import { createReconnectPace } from '@playline/errors';
import { Redis, ReplyError } from 'ioredis';
import type { SharedBalances } from '../balances.ts';

export interface RedisBalancesOptions {
  /** `redis://:password@host:port/database` */
  url: string;
  /** For `rediss://`: what is trusted, who we are, and the name that the certificate must bear. */
  tls?: Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'servername'>;
  /** Put before every key; tests use it, a deployment leaves it empty. */
  namespace?: string;
  /** Told of every fault of the connection; it reconnects by itself. */
  onFault?: (fault: Error) => void;
}

export interface RedisBalances extends SharedBalances {
  close(): Promise<void>;
}

/** A Redis that says nothing for this long while a command waits is taken for dead, so that a new connection is tried. */
const SILENCE_MAX_MS = 1000;
/** Redis on the same network connects in a millisecond; longer than this is an outage. */
const CONNECT_MAX_MS = 500;
/** With the limiter's own interval the limit is shared again within half a second of Redis being back. */
const RECONNECT_MAX_MS = 250;
const US_PER_MS = 1000;

const SCRIPT = readFileSync(new URL('charge.lua', import.meta.url), 'utf8');
const SCRIPT_SHA = createHash('sha1').update(SCRIPT).digest('hex');

/**
 * Buckets in Redis: `rate:<id>` holds the microsecond, by the clock of Redis, at which that bucket is full, and expires
 * then. Connects in the background; until then, and while Redis is away, every charge fails at once.
 */
export function openRedisBalances(options: RedisBalancesOptions): RedisBalances {
  const { url, tls, namespace = '' } = options;
  const pace = createReconnectPace('Redis', RECONNECT_MAX_MS);
  const redis = new Redis(url, {
    ...(tls === undefined ? {} : { tls }),
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: CONNECT_MAX_MS,
    socketTimeout: SILENCE_MAX_MS,
    retryStrategy: pace.waitMs,
  });
  // Every charge reports its own fault; without a listener ioredis prints each reconnect to the console.
  redis.on('error', (fault) => {
    pace.heard(fault);
    options.onFault?.(fault);
  });

  const run = async (args: (string | number)[]) => {
    try {
      return await redis.call('EVALSHA', SCRIPT_SHA, ...args);
    } catch (error) {
      if (!(error instanceof ReplyError) || !(error as Error).message.startsWith('NOSCRIPT')) throw error;
      return redis.call('EVAL', SCRIPT, ...args);
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
