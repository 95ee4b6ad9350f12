import { Redis } from 'ioredis';
import type { KeyRecord, KeyStore } from '../key-store.ts';

export interface RedisKeyStoreOptions {
  /** `redis://:password@host:port/database` */
  url: string;
  /** Put before every key; tests use it, a deployment leaves it empty. */
  namespace?: string;
}

export interface RedisKeyStore extends KeyStore {
  /** True when Redis answers. */
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

/** A Redis that says nothing for this long while a command waits is taken for dead, so that a new connection is tried. */
const SILENCE_MAX_MS = 2000;
/** Redis on the same network connects in a millisecond; longer than this is an outage. */
const CONNECT_MAX_MS = 1000;
/** An outage ends within this time of Redis being back. */
const RECONNECT_MAX_MS = 500;

/**
 * KEYS: live keys of the environment, keys of the project, ended record, added record.
 * ARGV: kind, hash of the ended key or '', ended record, hash of the added key or '', added record.
 */
const REPLACE = `
local live = redis.call('HGET', KEYS[1], ARGV[1]) or ''
if live ~= ARGV[2] then return 0 end
if ARGV[2] ~= '' then redis.call('SET', KEYS[3], ARGV[3]) end
if ARGV[4] == '' then redis.call('HDEL', KEYS[1], ARGV[1]) return 1 end
redis.call('SET', KEYS[4], ARGV[5])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[4])
redis.call('RPUSH', KEYS[2], ARGV[4])
return 1`;

/**
 * Key records in Redis: `k:<hash>` holds a record as JSON, `k:environment:<id>` the hash of the live key of each kind,
 * `k:project:<id>` the hashes of all keys of a project. Waits a second for Redis and opens all the same without it.
 */
export async function openRedisKeyStore({ url, namespace = '' }: RedisKeyStoreOptions): Promise<RedisKeyStore> {
  const redis = new Redis(url, {
    // A look-up must fail at once while Redis is away: the cached answer takes over, nothing may queue up.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: CONNECT_MAX_MS,
    socketTimeout: SILENCE_MAX_MS,
    retryStrategy: (attempt) => Math.min(50 * attempt, RECONNECT_MAX_MS),
  });
  // Every command reports its own fault; without a listener ioredis prints each reconnect to the console.
  redis.on('error', () => {});
  await connectedWithin(redis, CONNECT_MAX_MS);

  const recordKey = (hash: string) => `${namespace}k:${hash}`;
  const environmentKey = (id: string) => `${namespace}k:environment:${id}`;
  const projectKey = (id: string) => `${namespace}k:project:${id}`;
  const find = async (hash: string) => parseRecord(await redis.get(recordKey(hash)));

  return {
    find,
    findLive: async (environmentId, kind) => {
      const hash = await redis.hget(environmentKey(environmentId), kind);
      return hash === null ? null : find(hash);
    },
    replace: async (ended, added) => {
      const subject = added ?? ended;
      if (subject === null) return true;
      const endedHash = ended?.hash ?? '';
      const addedHash = added?.hash ?? '';
      const keys = [environmentKey(subject.environmentId), projectKey(subject.projectId)];
      const values = [subject.kind, endedHash, JSON.stringify(ended), addedHash, JSON.stringify(added)];
      const done = await redis.eval(REPLACE, 4, ...keys, recordKey(endedHash), recordKey(addedHash), ...values);
      return done === 1;
    },
    list: async (projectId) => {
      const hashes = await redis.lrange(projectKey(projectId), 0, -1);
      const records = await Promise.all(hashes.map(find));
      return records.filter((record) => record !== null);
    },
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

function parseRecord(text: string | null): KeyRecord | null {
  return text === null ? null : (JSON.parse(text) as KeyRecord);
}
