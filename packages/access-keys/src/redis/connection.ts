import { createRedisClientSetup, type RedisClientOptions, waitAtMost } from '@playline/errors';
import { Redis } from 'ioredis';

/** The Redis that keeps keys, accounts and sessions, and how to connect to it. */
export interface RedisAccessOptions extends RedisClientOptions {
  /** Put before every key; tests use it, a deployment leaves it empty. */
  namespace?: string;
  /** What is opened with the same one uses one connection. Without it, each has a connection of its own. */
  sharing?: RedisSharing;
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

/** One connection for several views of a process. It is opened with the first and closed with the last. */
export class RedisSharing {
  #connection: Promise<RedisConnection> | null = null;
  #users = 0;

  /** Opens the connection unless it is open. */
  async join(connect: () => Promise<RedisConnection>): Promise<RedisConnection> {
    this.#users += 1;
    this.#connection ??= connect();
    const { redis, ready, close } = await this.#connection;
    let isOpen = true;
    return {
      redis,
      ready,
      close: async () => {
        if (!isOpen) return;
        isOpen = false;
        this.#users -= 1;
        if (this.#users > 0) return;
        this.#connection = null;
        await close();
      },
    };
  }
}

/**
 * Opens a connection whose commands fail at once while Redis is away. Waits a second for Redis, then returns without
 * it.
 */
export function openConnection(options: RedisAccessOptions): Promise<RedisConnection> {
  const { sharing } = options;
  return sharing === undefined ? connect(options) : sharing.join(() => connect(options));
}

async function connect(options: RedisAccessOptions): Promise<RedisConnection> {
  const setup = createRedisClientSetup(options, WAITS);
  const redis = new Redis(options.url, {
    ...setup.options,
    socketTimeout: SILENCE_MAX_MS,
    // What is asked at the same moment is sent together, and wakes Redis and this process once.
    enableAutoPipelining: true,
  });
  redis.on('error', setup.onError);
  const connected = new Promise<void>((resolve) => void redis.once('ready', resolve));
  await waitAtMost(WAITS.connectMaxMs, connected, () => {});
  return {
    redis,
    ready: async () => redis.status === 'ready' && (await redis.ping()) === 'PONG',
    close: async () => redis.disconnect(),
  };
}
