import { openRedis, type RedisAdapterOptions, type RedisConnection } from '@playline/stores/redis';

/** The Redis that keeps keys, accounts and sessions, and how to connect to it. */
export interface RedisAccessOptions extends RedisAdapterOptions {
  /** What is opened with the same one uses one connection. Without it, each has a connection of its own. */
  sharing?: RedisSharing;
}

/** Redis on the same network connects in a millisecond; a second is an outage. */
const LIMITS = { connectMaxMs: 1000, silenceMaxMs: 2000, enableAutoPipelining: true };

/** One connection for several views of a process. It is opened with the first and closed with the last. */
export class RedisSharing {
  #connection: Promise<RedisConnection> | null = null;
  #users = 0;

  /** Opens the connection unless it is open. */
  async join(connect: () => Promise<RedisConnection>): Promise<RedisConnection> {
    this.#users += 1;
    this.#connection ??= connect();
    const { close, ...rest } = await this.#connection;
    let isOpen = true;
    return {
      ...rest,
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
 * Opens a connection whose commands fail at once while Redis is away. Waits at most a second for Redis, then returns
 * without it.
 */
export function openConnection(options: RedisAccessOptions): Promise<RedisConnection> {
  const { sharing } = options;
  return sharing === undefined ? connect(options) : sharing.join(() => connect(options));
}

async function connect(options: RedisAccessOptions): Promise<RedisConnection> {
  const connection = openRedis(options, LIMITS);
  await connection.opened;
  return connection;
}
