import { openRedis, type RedisAdapterOptions } from '@playline/stores/redis';
import type { Watermarks } from '../watermarks.ts';

const LIMITS = { commandTimeoutMs: 2_000, enableAutoPipelining: true };

/** Never lowers a watermark: a former owner of the partition may still be running. */
const RAISE = `
local stored = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '-1')
if tonumber(ARGV[2]) > stored then redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) end
return 1`;

/** Stores one hash field per partition. Resolves even if Redis is unavailable; see `ready`. */
export async function openRedisWatermarks(options: RedisAdapterOptions): Promise<Watermarks> {
  // Errors are reported by the calls that they affect.
  const { redis, opened, ready, close } = openRedis(options, LIMITS);
  await opened;
  const key = `${options.namespace ?? ''}chain:watermark`;
  return {
    publish: async (partition, us) => {
      if (!Number.isSafeInteger(us) || us < 0)
        throw new RangeError('a watermark must be a whole number of microseconds');
      await redis.eval(RAISE, 1, key, String(partition), String(us));
    },
    read: async (partition) => {
      const text = await redis.hget(key, String(partition));
      if (text === null) return null;
      const us = Number(text);
      if (!Number.isSafeInteger(us) || us < 0)
        throw new Error('the stored watermark is not a whole number of microseconds');
      return us;
    },
    ready,
    close,
  };
}
