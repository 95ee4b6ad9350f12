import { createRedisClientSetup, type RedisClientOptions, waitAtMost } from '@playline/errors';
import { Redis } from 'ioredis';

/** The Redis that keeps keys, accounts and sessions, and how to connect to it. */
export interface RedisAccessOptions extends RedisClientOptions {
  /** Put before every key; tests use it, a deployment leaves it empty. */
  namespace?: string;
}

/**
 * If Redis sends nothing for this long while a command waits, the connection counts as broken and a new one is opened.
 */
const SILENCE_MAX_MS = 2000;
/** Redis on the same network connects in a millisecond; a second is an outage. */
const WAITS = { connectMaxMs: 1000, reconnectMaxMs: 500 };

/** A connection, and what a view says of it. */
export interface RedisConnection {
  readonly redis: Redis;
  /** True when Redis answers. */
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

/**
 * Opens a connection whose commands fail at once while Redis is away. Waits a second for Redis, then returns without
 * it.
 */
export async function openConnection(options: RedisAccessOptions): Promise<RedisConnection> {
  const setup = createRedisClientSetup(options, WAITS);
  const redis = new Redis(options.url, { ...setup.options, socketTimeout: SILENCE_MAX_MS });
  redis.on('error', setup.onError);
  const connected = new Promise<void>((resolve) => void redis.once('ready', resolve));
  await waitAtMost(WAITS.connectMaxMs, connected, () => {});
  return {
    redis,
    ready: async () => redis.status === 'ready' && (await redis.ping()) === 'PONG',
    close: async () => redis.disconnect(),
  };
}
