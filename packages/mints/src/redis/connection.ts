import { createHash } from 'node:crypto';
import { createRedisClientSetup, type RedisClientOptions } from '@playline/errors';
import { Redis, ReplyError } from 'ioredis';

export interface RedisMintsOptions extends RedisClientOptions {
  /** Put before every key; tests use it, a deployment leaves it empty. */
  namespace?: string;
}

/** A script of a hundred reference ids takes a millisecond, so a longer silence means that the server is away. */
const COMMAND_TIMEOUT_MS = 2_000;

/** A script that may write but writes nothing. Redis refuses it exactly when it refuses writes. */
const MAY_WRITE = '#!lua\nreturn 1';

/** Runs scripts by their hash. */
export interface Scripts {
  run(script: string, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown>;
  readonly redis: Redis;
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

/** Resolves even while Redis is away; then each command fails at once. */
export async function openScripts(options: RedisMintsOptions): Promise<Scripts> {
  const setup = createRedisClientSetup(options);
  const redis = new Redis(options.url, {
    ...setup.options,
    lazyConnect: true,
    // Callers are requests or are retried, so commands must not be resent behind their backs.
    autoResendUnfulfilledCommands: false,
    commandTimeout: COMMAND_TIMEOUT_MS,
  });
  redis.on('error', setup.onError);
  await redis.connect().catch(() => {});
  return {
    redis,
    run: async (script, keys, args) => {
      const given = [keys.length, ...keys, ...args];
      try {
        return await redis.call('EVALSHA', [hashOf(script), ...given]);
      } catch (error) {
        if (!(error instanceof ReplyError) || !(error as Error).message.startsWith('NOSCRIPT')) throw error;
        return redis.call('EVAL', [script, ...given]);
      }
    },
    ready: async () => {
      if (redis.status !== 'ready') return false;
      try {
        await redis.eval(MAY_WRITE, 0);
        return true;
      } catch (fault) {
        if (fault instanceof ReplyError) options.onFault?.(fault as Error);
        return false;
      }
    },
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
