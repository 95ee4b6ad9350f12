import { createRedisClientSetup, type RedisClientOptions } from '@playline/errors';
import { Redis } from 'ioredis';
import type { Watermarks } from '../watermarks.ts';

export interface RedisWatermarksOptions extends RedisClientOptions {
  /** Put before the key; tests use it, a deployment leaves it empty. */
  namespace?: string;
}

/** A command reads or writes one field, so a longer silence means that the server is away. */
const COMMAND_TIMEOUT_MS = 2_000;

/**
 * Only raises the value: a paused former owner of the partition must not undo what the new owner wrote. Exact below
 * 2^53.
 */
const RAISE = `
local standing = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '-1')
if tonumber(ARGV[2]) > standing then redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) end
return 1`;

/** Opens watermarks in Redis, one field per partition. Resolves even while Redis is away; ask `ready`. */
export async function openRedisWatermarks(options: RedisWatermarksOptions): Promise<Watermarks> {
  const { url, namespace = '' } = options;
  const setup = createRedisClientSetup(options);
  // Callers handle failures: a reader keeps its last watermark, a writer retries.
  const redis = new Redis(url, {
    ...setup.options,
    lazyConnect: true,
    autoResendUnfulfilledCommands: false,
    commandTimeout: COMMAND_TIMEOUT_MS,
    // All partitions are asked for at the same moment: they are sent together, and wake Redis and this process once.
    enableAutoPipelining: true,
  });
  redis.on('error', setup.onError);
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
