import { openRedis, type RedisAdapterOptions } from '@playline/stores/redis';
import type { Watermarks } from '../watermarks.ts';

/** A command reads or writes one field, so a longer silence means that the server is away. */
const LIMITS = { commandTimeoutMs: 2_000, enableAutoPipelining: true };

/**
 * Only raises the value: a paused former owner of the partition must not undo what the new owner wrote. Exact below
 * 2^53.
 */
const RAISE = `
local standing = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '-1')
if tonumber(ARGV[2]) > standing then redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) end
return 1`;

/** Opens watermarks in Redis, one field per partition. Resolves even while Redis is away; ask `ready`. */
export async function openRedisWatermarks(options: RedisAdapterOptions): Promise<Watermarks> {
  // Callers handle failures: a reader keeps its last watermark, a writer retries.
  const { redis, opened, ready, close } = openRedis(options, LIMITS);
  await opened;
  const key = `${options.namespace ?? ''}chain:watermark`;
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
    ready,
    close,
  };
}
