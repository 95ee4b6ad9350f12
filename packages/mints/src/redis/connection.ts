import {
  assertTakesWrites,
  isReplyError,
  openRedis,
  type RedisAdapterOptions,
  type RedisConnection,
  runScript,
} from '@playline/stores/redis';

/** A script of a hundred reference ids takes a millisecond, so a longer silence means that the server is away. */
const LIMITS = { commandTimeoutMs: 2_000 };

/** Runs scripts. `ready` is true when Redis takes writes. */
export interface Scripts extends Omit<RedisConnection, 'opened'> {
  run(script: string, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown>;
}

/** Resolves even while Redis is away; then each command fails at once. */
export async function openScripts(options: RedisAdapterOptions): Promise<Scripts> {
  const { redis, opened, close } = openRedis(options, LIMITS);
  await opened;
  return {
    redis,
    run: (script, keys, args) => runScript(redis, { script, keys, args }),
    ready: async () => {
      if (redis.status !== 'ready') return false;
      try {
        await assertTakesWrites(redis);
        return true;
      } catch (fault) {
        if (isReplyError(fault)) options.onFault?.(fault);
        return false;
      }
    },
    close,
  };
}
