import type { ConnectionOptions } from 'node:tls';
import { createReconnectPace } from '@playline/errors';
import { Redis } from 'ioredis';
import type { Watermarks } from '../watermarks.ts';

export interface RedisWatermarksOptions {
  /** With its password: `redis://:password@host:port/database` */
  url: string;
  /** For `rediss://`: what is trusted, who we are, and the name that the certificate must bear. */
  tls?: Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'servername'>;
  /** Put before the key; tests use it, a deployment leaves it empty. */
  namespace?: string;
  /** Told of every fault of the connection; it reconnects by itself. */
  onFault?: (fault: Error) => void;
}

/** One field is read or written: a server that is silent for longer counts as away. */
const COMMAND_TIMEOUT_MS = 2_000;
const CONNECT_TIMEOUT_MS = 2_000;
/** An outage ends within this time of Redis being back. */
const RECONNECT_DELAY_MAX_MS = 500;

/** Of two owners of a partition the one that was paused must not take back what the other has said. Exact below 2^53. */
const RAISE = `
local standing = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '-1')
if tonumber(ARGV[2]) > standing then redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) end
return 1`;

/** Opens watermarks in Redis, one field a partition; resolves also while Redis is away, `ready` tells. */
export async function openRedisWatermarks(options: RedisWatermarksOptions): Promise<Watermarks> {
  const { url, tls, namespace = '' } = options;
  const pace = createReconnectPace('Redis', RECONNECT_DELAY_MAX_MS);
  const redis = new Redis(url, {
    ...(tls === undefined ? {} : { tls }),
    lazyConnect: true,
    // A reader has the last watermark that it knew, a writer comes again: nothing may queue up.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    commandTimeout: COMMAND_TIMEOUT_MS,
    connectTimeout: CONNECT_TIMEOUT_MS,
    retryStrategy: pace.waitMs,
  });
  redis.on('error', (fault) => {
    pace.heard(fault);
    options.onFault?.(fault);
  });
  await redis.connect().catch(() => {});
  const key = `${namespace}chain:watermark`;
  return {
    publish: async (partition, us) => {
      if (!Number.isSafeInteger(us) || us < 0) throw new RangeError('a watermark is a whole number of microseconds');
      await redis.eval(RAISE, 1, key, String(partition), String(us));
    },
    read: async (partition) => {
      const text = await redis.hget(key, String(partition));
      if (text === null) return null;
      const us = Number(text);
      if (!Number.isSafeInteger(us) || us < 0) throw new Error('a watermark is no whole number of microseconds');
      return us;
    },
    ready: async () => redis.status === 'ready' && (await redis.ping()) === 'PONG',
    close: async () => redis.disconnect(),
  };
}
