import type { ConnectionOptions } from 'node:tls';
import { createReconnectPace } from '@playline/errors';
import { Redis } from 'ioredis';

/** Where what is kept of access is, and how it is connected to. */
export interface RedisAccessOptions {
  /** `redis://:password@host:port/database` */
  url: string;
  /** For `rediss://`: what is trusted, who we are, and the name that the certificate must bear. */
  tls?: Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'servername'>;
  /** Put before every key; tests use it, a deployment leaves it empty. */
  namespace?: string;
  /** Told of every fault of the connection; it reconnects by itself. */
  onFault?: (fault: Error) => void;
}

/** A Redis that says nothing for this long while a command waits is taken for dead, so that a new connection is tried. */
const SILENCE_MAX_MS = 2000;
/** Redis on the same network connects in a millisecond; longer than this is an outage. */
const CONNECT_MAX_MS = 1000;
/** An outage ends within this time of Redis being back. */
const RECONNECT_MAX_MS = 500;

/** A connection, and what a view says of it. */
export interface RedisConnection {
  readonly redis: Redis;
  /** True when Redis answers. */
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

/** Opens a connection whose commands fail at once while Redis is away. Waits a second for it, and opens without it. */
export async function openConnection({ url, tls, onFault }: RedisAccessOptions): Promise<RedisConnection> {
  const pace = createReconnectPace('Redis', RECONNECT_MAX_MS);
  const redis = new Redis(url, {
    ...(tls === undefined ? {} : { tls }),
    // A look-up must fail at once while Redis is away: the cached answer takes over, nothing may queue up.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: CONNECT_MAX_MS,
    socketTimeout: SILENCE_MAX_MS,
    retryStrategy: pace.waitMs,
  });
  // Every command reports its own fault; without a listener ioredis prints each reconnect to the console.
  redis.on('error', (fault) => {
    pace.heard(fault);
    onFault?.(fault);
  });
  await connectedWithin(redis, CONNECT_MAX_MS);
  return {
    redis,
    ready: async () => redis.status === 'ready' && (await redis.ping()) === 'PONG',
    close: async () => redis.disconnect(),
  };
}

async function connectedWithin(redis: Redis, boundMs: number): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, boundMs);
    redis.once('ready', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
