import type { ConnectionOptions } from 'node:tls';
import { createReconnectPace } from '@playline/errors';
import { Redis } from 'ioredis';

export interface RedisConnectionOptions {
  /** With its password: `redis://:password@host:port/database` */
  url: string;
  /** For `rediss://`: what is trusted, who we are, and the name that the certificate must bear. */
  tls?: Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'servername'>;
  /** A server that is silent for this long counts as away. Must be shorter than the deadline of whoever asks; 5 s unless told. */
  commandTimeoutMs?: number;
  /** Told of every fault of the connection; it reconnects by itself. */
  onFault?: (fault: Error) => void;
}

/** Long enough for calls of the graph's script that wait behind each other. */
const COMMAND_TIMEOUT_MS = 5_000;
const CONNECT_TIMEOUT_MS = 2_000;
/** An outage ends within this time of Redis being back. */
const RECONNECT_DELAY_MAX_MS = 500;

/** Connects; resolves also while Redis is away. */
export async function connect(options: RedisConnectionOptions): Promise<Redis> {
  const pace = createReconnectPace('Redis', RECONNECT_DELAY_MAX_MS);
  const redis = new Redis(options.url, {
    ...(options.tls === undefined ? {} : { tls: options.tls }),
    lazyConnect: true,
    // A command whose connection broke fails: only the caller knows whether and from where to try again.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    commandTimeout: options.commandTimeoutMs ?? COMMAND_TIMEOUT_MS,
    connectTimeout: CONNECT_TIMEOUT_MS,
    retryStrategy: pace.waitMs,
  });
  redis.on('error', (fault) => {
    pace.heard(fault);
    options.onFault?.(fault);
  });
  await redis.connect().catch(() => {});
  return redis;
}
