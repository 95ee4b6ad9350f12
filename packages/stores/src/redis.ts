import { createHash } from 'node:crypto';
import type { ConnectionOptions } from 'node:tls';
import { Redis, ReplyError } from 'ioredis';
import { createReconnectPace } from './connection-faults.ts';

export type { Redis };

/** Where a Redis is and how it is connected to, as every adapter takes it. */
export interface RedisClientOptions {
  /** With its password: `redis://:password@host:port/database` */
  url: string;
  /** For `rediss://`: what is trusted, who we are, and the name that the certificate must bear. */
  tls?: Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'servername'>;
  /** Called with every fault of the connection; it reconnects by itself. */
  onFault?: (fault: Error) => void;
}

/** Options of an adapter whose keys may have a prefix. */
export interface RedisAdapterOptions extends RedisClientOptions {
  /** Put before every key; tests use it, a deployment leaves it empty. */
  namespace?: string;
}

/** Limits of one connection. */
export interface RedisLimits {
  /** After so many milliseconds an attempt to connect has failed. Redis on the same network connects in one. Default: 2 s. */
  readonly connectMaxMs?: number;
  /** Longest wait before the next attempt: an outage ends within this time of Redis being back. Default: 500 ms. */
  readonly reconnectMaxMs?: number;
  /** A command without an answer fails after so many milliseconds. */
  readonly commandTimeoutMs?: number;
  /** A connection on which nothing arrives for so many milliseconds while a command waits is replaced. */
  readonly silenceMaxMs?: number;
  /** Commands of the same moment are sent together, which wakes Redis and this process once. */
  readonly enableAutoPipelining?: boolean;
}

export interface RedisConnection {
  readonly redis: Redis;
  /** Settles when Redis is connected, or when the first attempt has failed. Never rejects. */
  readonly opened: Promise<void>;
  /** True when Redis answers. */
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

/**
 * Opens a connection in the background. A command fails at once while Redis is away, and none is queued or sent again:
 * only the caller knows whether it may be done twice.
 */
export function openRedis({ url, tls, onFault }: RedisClientOptions, limits: RedisLimits = {}): RedisConnection {
  const { connectMaxMs = 2_000, reconnectMaxMs = 500, commandTimeoutMs, silenceMaxMs } = limits;
  const pace = createReconnectPace('Redis', reconnectMaxMs);
  const redis = new Redis(url, {
    // Its mere presence turns TLS on.
    ...(tls !== undefined && { tls }),
    ...(commandTimeoutMs !== undefined && { commandTimeout: commandTimeoutMs }),
    ...(silenceMaxMs !== undefined && { socketTimeout: silenceMaxMs }),
    enableAutoPipelining: limits.enableAutoPipelining ?? false,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: connectMaxMs,
    retryStrategy: pace.waitMs,
    lazyConnect: true,
  });
  // Without a listener ioredis prints every attempt to the console.
  redis.on('error', (fault) => {
    pace.failed(fault);
    onFault?.(fault);
  });
  return {
    redis,
    opened: redis.connect().catch(() => {}),
    ready: async () => redis.status === 'ready' && (await redis.ping()) === 'PONG',
    close: async () => redis.disconnect(),
  };
}

/** A script that may write but writes nothing. */
const MAY_WRITE = '#!lua\nreturn 1';

/** @throws ReplyError exactly when Redis refuses writes: full, without disk, a replica, or without its replicas */
export async function assertTakesWrites(redis: Redis): Promise<void> {
  await redis.eval(MAY_WRITE, 0);
}

export const isReplyError = (fault: unknown): fault is Error => fault instanceof ReplyError;

const hashes = new Map<string, string>();

function hashOf(script: string): string {
  const known = hashes.get(script);
  if (known !== undefined) return known;
  const hash = createHash('sha1').update(script).digest('hex');
  hashes.set(script, hash);
  return hash;
}

export interface ScriptCall {
  readonly script: string;
  readonly keys: readonly string[];
  readonly args: readonly (string | number | Buffer)[];
}

/** Runs a script by its hash, or by its text if the server does not know it yet. Texts of the reply are strings. */
export function runScript(redis: Redis, call: ScriptCall): Promise<unknown> {
  return byHash(call, (command, args) => redis.call(command, args));
}

/** As `runScript`; texts of the reply are buffers. */
export function runScriptBuffer(redis: Redis, call: ScriptCall): Promise<unknown> {
  return byHash(call, (command, args) => redis.callBuffer(command, args));
}

async function byHash(
  { script, keys, args }: ScriptCall,
  send: (command: 'EVALSHA' | 'EVAL', args: (string | number | Buffer)[]) => Promise<unknown>,
): Promise<unknown> {
  const given = [keys.length, ...keys, ...args];
  try {
    return await send('EVALSHA', [hashOf(script), ...given]);
  } catch (fault) {
    if (!isReplyError(fault) || !fault.message.startsWith('NOSCRIPT')) throw fault;
    return send('EVAL', [script, ...given]);
  }
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
