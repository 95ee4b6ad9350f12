import { createRedisClientSetup, type RedisClientOptions } from '@playline/errors';
import { Redis } from 'ioredis';

export interface RedisConnectionOptions extends RedisClientOptions {
  /** A server that is silent for this long counts as away. Must be shorter than the deadline of whoever asks; 5 s unless told. */
  commandTimeoutMs?: number;
}

/** Long enough for calls of the graph's script that wait behind each other. */
const COMMAND_TIMEOUT_MS = 5_000;
const WAITS = { connectMaxMs: 2_000, reconnectMaxMs: 500 };

/** Connects; resolves also while Redis is away. */
export async function connect(options: RedisConnectionOptions): Promise<Redis> {
  const setup = createRedisClientSetup(options, WAITS);
  const redis = new Redis(options.url, {
    ...setup.options,
    lazyConnect: true,
    autoResendUnfulfilledCommands: false,
    commandTimeout: options.commandTimeoutMs ?? COMMAND_TIMEOUT_MS,
  });
  redis.on('error', setup.onError);
  await redis.connect().catch(() => {});
  return redis;
}
