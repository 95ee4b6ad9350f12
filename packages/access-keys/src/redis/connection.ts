import { openRedis, type RedisAdapterOptions, type RedisConnection } from '@playline/stores/redis';

export interface RedisAccessOptions extends RedisAdapterOptions {
  /** Connection to share. Default: a separate connection. */
  sharing?: RedisSharing;
}

/** Connecting to Redis on the same network takes a millisecond. */
const LIMITS = { connectMaxMs: 1000, silenceMaxMs: 2000, enableAutoPipelining: true };

/** One connection for several views. The first view opens the connection and the last view closes it. */
export class RedisSharing {
  #connection: Promise<RedisConnection> | null = null;
  #users = 0;

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

/** Waits up to a second for Redis. Commands fail immediately while Redis is down. */
export function openConnection(options: RedisAccessOptions): Promise<RedisConnection> {
  const { sharing } = options;
  return sharing === undefined ? connect(options) : sharing.join(() => connect(options));
}

async function connect(options: RedisAccessOptions): Promise<RedisConnection> {
  const connection = openRedis(options, LIMITS);
  await connection.opened;
  return connection;
}
