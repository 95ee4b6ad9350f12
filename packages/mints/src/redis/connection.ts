import { createHash } from 'node:crypto';
import type { ConnectionOptions } from 'node:tls';
import { createReconnectPace } from '@playline/errors';
import { Redis, ReplyError } from 'ioredis';

export interface RedisMintsOptions {
  /** `redis://:password@host:port/database` */
  url: string;
  /** For `rediss://`: what is trusted, who we are, and the name that the certificate must bear. */
  tls?: Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'servername'>;
  /** Put before every key; tests use it, a deployment leaves it empty. */
  namespace?: string;
  /** Told of every fault of the connection; it reconnects by itself. */
  onFault?: (fault: Error) => void;
}

/** A script of a hundred reference ids takes a millisecond: a server that is silent for longer counts as away. */
const COMMAND_TIMEOUT_MS = 2_000;
const CONNECT_TIMEOUT_MS = 2_000;
/** An outage ends within this time of Redis being back. */
const RECONNECT_DELAY_MAX_MS = 500;

/** Runs scripts by their hash. */
export interface Scripts {
  run(script: string, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown>;
  readonly redis: Redis;
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

/** Resolves also while Redis is away: then each command fails at once. */
export async function openScripts({ url, tls, onFault }: RedisMintsOptions): Promise<Scripts> {
  const pace = createReconnectPace('Redis', RECONNECT_DELAY_MAX_MS);
  const redis = new Redis(url, {
    ...(tls === undefined ? {} : { tls }),
    lazyConnect: true,
    // Whoever asks is a request, or comes again by itself: nothing may queue up, and nothing be done twice.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    commandTimeout: COMMAND_TIMEOUT_MS,
    connectTimeout: CONNECT_TIMEOUT_MS,
    retryStrategy: pace.waitMs,
  });
  redis.on('error', (fault) => {
    pace.heard(fault);
    onFault?.(fault);
  });
  await redis.connect().catch(() => {});
  return {
    redis,
    run: async (script, keys, args) => {
      const given = [keys.length, ...keys, ...args];
      try {
        return await redis.call('EVALSHA', hashOf(script), ...given);
      } catch (error) {
        if (!(error instanceof ReplyError) || !(error as Error).message.startsWith('NOSCRIPT')) throw error;
        return redis.call('EVAL', script, ...given);
      }
    },
    ready: async () => redis.status === 'ready' && (await redis.ping()) === 'PONG',
    close: async () => redis.disconnect(),
  };
}

const hashes = new Map<string, string>();

function hashOf(script: string): string {
  const known = hashes.get(script);
  if (known !== undefined) return known;
  const made = createHash('sha1').update(script).digest('hex');
  hashes.set(script, made);
  return made;
}
