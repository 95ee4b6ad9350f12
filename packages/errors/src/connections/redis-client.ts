import type { ConnectionOptions } from 'node:tls';
import { createReconnectPace } from './pace.ts';

/** Where a Redis is and how it is connected to, as every adapter takes it. */
export interface RedisClientOptions {
  /** With its password: `redis://:password@host:port/database` */
  url: string;
  /** For `rediss://`: what is trusted, who we are, and the name that the certificate must bear. */
  tls?: Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'servername'>;
  /** Told of every fault of the connection; it reconnects by itself. */
  onFault?: (fault: Error) => void;
}

/** How patient a client of Redis is. */
export interface RedisWaits {
  /** After so many milliseconds an attempt to connect has failed. */
  readonly connectMaxMs: number;
  /** Longest wait before the next attempt: an outage ends within this time of Redis being back. */
  readonly reconnectMaxMs: number;
}

/** Redis on the same network connects in a millisecond, so a longer wait means an outage. */
const USUAL_WAITS: RedisWaits = { connectMaxMs: 2_000, reconnectMaxMs: 500 };

/** What clients of Redis are told alike; `ioredis` takes `options` as they are. */
export interface RedisClientSetup {
  readonly options: {
    readonly tls?: NonNullable<RedisClientOptions['tls']>;
    readonly enableOfflineQueue: false;
    readonly maxRetriesPerRequest: 0;
    readonly connectTimeout: number;
    readonly retryStrategy: (attempt: number) => number;
  };
  /** The client's listener for `error`: without one ioredis prints every attempt to the console. */
  readonly onError: (fault: Error) => void;
}

/**
 * Creates what every client of Redis is told. A command fails at once while Redis is away, and none is queued or sent
 * again: only the caller knows whether it may be done twice.
 */
export function createRedisClientSetup(
  { tls, onFault }: Pick<RedisClientOptions, 'tls' | 'onFault'>,
  { connectMaxMs, reconnectMaxMs }: RedisWaits = USUAL_WAITS,
): RedisClientSetup {
  const pace = createReconnectPace('Redis', reconnectMaxMs);
  return {
    options: {
      ...(tls === undefined ? {} : { tls }),
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      connectTimeout: connectMaxMs,
      retryStrategy: pace.waitMs,
    },
    onError(fault) {
      pace.heard(fault);
      onFault?.(fault);
    },
  };
}

/**
 * Lua for scripts: `present_run()` identifies the present run of Redis, which is its process, and since when it is the
 * primary. A start gives a new `run_id`, a promotion a new replication id; both may have lost the last writes.
 */
export const PRESENT_RUN_LUA = `
local function present_run()
  local info = redis.call('INFO', 'server', 'replication')
  return string.match(info, 'run_id:(%x+)') .. ':' .. string.match(info, 'master_replid:(%x+)')
end
`;
