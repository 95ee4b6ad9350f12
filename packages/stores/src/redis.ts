import { createHash } from 'node:crypto';
import { Redis, ReplyError } from 'ioredis';
import { createReconnectPace } from './connection-faults.ts';
import type { TlsOptions } from './store-fetch.ts';

export type { Redis };

export interface RedisClientOptions {
  url: string;
  /** TLS options for `rediss://` URLs. */
  tls?: TlsOptions;
  /** Called with every connection fault. The client reconnects automatically. */
  onFault?: (fault: Error) => void;
}

export interface RedisAdapterOptions extends RedisClientOptions {
  /** Prefix of all keys, used by tests. */
  namespace?: string;
}

export interface RedisLimits {
  readonly connectMaxMs?: number;
  readonly reconnectMaxMs?: number;
  readonly commandTimeoutMs?: number;
  /** Replaces a connection that receives nothing for this long while a command is pending. */
  readonly silenceMaxMs?: number;
  readonly enableAutoPipelining?: boolean;
}

export interface RedisConnection {
  readonly redis: Redis;
  /** Resolves when Redis is connected or the first attempt has failed. Never rejects. */
  readonly opened: Promise<void>;
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

/** Connects in the background. While Redis is unavailable, commands fail. Commands are never queued or resent. */
export function openRedis({ url, tls, onFault }: RedisClientOptions, limits: RedisLimits = {}): RedisConnection {
  const { connectMaxMs = 2_000, reconnectMaxMs = 500, commandTimeoutMs, silenceMaxMs } = limits;
  const pace = createReconnectPace('Redis', reconnectMaxMs);
  const redis = new Redis(url, {
    // TLS is enabled if this option is present.
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
  // Without a listener, ioredis prints every failed attempt.
  redis.on('error', (fault) => {
    pace.recordFault(fault);
    onFault?.(fault);
  });
  return {
    redis,
    opened: redis.connect().catch(() => {}),
    ready: async () => redis.status === 'ready' && (await redis.ping()) === 'PONG',
    close: async () => redis.disconnect(),
  };
}

/** A script that is declared as writing but writes nothing. */
const MAY_WRITE = '#!lua\nreturn 1';

/** @throws ReplyError if Redis rejects writes: full, disk error, read-only replica, or too few replicas */
export async function assertTakesWrites(redis: Redis): Promise<void> {
  await redis.eval(MAY_WRITE, 0);
}

export const isReplyError = (fault: unknown): fault is Error => fault instanceof ReplyError;

const hashes = new Map<string, string>();

function hashOf(script: string): string {
  const cached = hashes.get(script);
  if (cached !== undefined) return cached;
  const hash = createHash('sha1').update(script).digest('hex');
  hashes.set(script, hash);
  return hash;
}

export interface ScriptCall {
  readonly script: string;
  readonly keys: readonly string[];
  readonly args: readonly (string | number | Buffer)[];
}

/** Runs a script by hash, or by source if the server has not cached it. The reply contains strings. */
export function runScript(redis: Redis, call: ScriptCall): Promise<unknown> {
  return byHash(call, (command, args) => redis.call(command, args));
}

/** Like `runScript`, but the reply contains buffers. */
export function runScriptBuffer(redis: Redis, call: ScriptCall): Promise<unknown> {
  return byHash(call, (command, args) => redis.callBuffer(command, args));
}

async function byHash(
  { script, keys, args }: ScriptCall,
  send: (command: 'EVALSHA' | 'EVAL', args: (string | number | Buffer)[]) => Promise<unknown>,
): Promise<unknown> {
  const params = [keys.length, ...keys, ...args];
  try {
    return await send('EVALSHA', [hashOf(script), ...params]);
  } catch (fault) {
    if (!isReplyError(fault) || !fault.message.startsWith('NOSCRIPT')) throw fault;
    return send('EVAL', [script, ...params]);
  }
}

/**
 * Lua: `present_run()` identifies the current Redis process and its primary. The value changes after a restart or a
 * promotion, either of which may lose the last writes.
 */
export const PRESENT_RUN_LUA = `
local function present_run()
  local info = redis.call('INFO', 'server', 'replication')
  return string.match(info, 'run_id:(%x+)') .. ':' .. string.match(info, 'master_replid:(%x+)')
end
`;
