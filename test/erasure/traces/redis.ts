import { REDIS_STORES } from '@playline/erasure';
import type { Redis } from 'ioredis';
import { findInBytes, type Needle, type Trace } from './needle.ts';

/** Searches the names and values of all keys in the client's database. */
export async function findInRedis(redis: Redis, needles: readonly Needle[]): Promise<Trace[]> {
  const counts = new Map<string, Trace>();
  for (const key of await keysOf(redis)) {
    const bytes = Buffer.concat([key, Buffer.from('\n'), ...(await valuesOf(redis, key))]);
    for (const trace of findInBytes(`redis ${familyOf(key)}`, bytes, needles)) {
      const name = `${trace.location} ${trace.needle}`;
      counts.set(name, { ...trace, count: (counts.get(name)?.count ?? 0) + trace.count });
    }
  }
  return [...counts.values()];
}

async function keysOf(redis: Redis): Promise<Buffer[]> {
  const keys: Buffer[] = [];
  let cursor = '0';
  do {
    const [next, found] = (await redis.callBuffer('SCAN', cursor, 'COUNT', '1000')) as [Buffer, Buffer[]];
    keys.push(...found);
    cursor = next.toString();
  } while (cursor !== '0');
  return keys;
}

const QUERIES: Record<string, (key: Buffer) => [string, ...(Buffer | string)[]]> = {
  string: (key) => ['GET', key],
  hash: (key) => ['HGETALL', key],
  list: (key) => ['LRANGE', key, '0', '-1'],
  set: (key) => ['SMEMBERS', key],
  zset: (key) => ['ZRANGE', key, '0', '-1', 'WITHSCORES'],
};

async function valuesOf(redis: Redis, key: Buffer): Promise<Buffer[]> {
  const type = await redis.type(key);
  // The key expired or was deleted in the meantime.
  if (type === 'none') return [];
  const toCommand = QUERIES[type];
  if (toCommand === undefined) throw new Error(`no command to read type ${type}`);
  const [command, ...args] = toCommand(key);
  const reply = (await redis.callBuffer(command, ...args)) as Reply;
  return partsOf(reply).flatMap((value) => [value, Buffer.from('\n')]);
}

/** Pairs may be nested lists, and scores may be numbers. */
type Reply = Buffer | number | null | readonly Reply[];

const partsOf = (reply: Reply): Buffer[] =>
  Array.isArray(reply) ? reply.flatMap(partsOf) : Buffer.isBuffer(reply) ? [reply] : [];

const toPattern = (name: string) => {
  const text = name.replaceAll(/[.*+?^$()|[\]\\]/g, '\\$&').replaceAll(/\{\w+\}/g, '\\{[^}]*\\}');
  return new RegExp(`^${text.replaceAll(/<[^>]+>/g, '[\\s\\S]+')}$`);
};
/** Families without a placeholder are matched first because a placeholder may also match their names. */
const FAMILIES = REDIS_STORES.map(({ name }) => ({ name, pattern: toPattern(name) })).sort(
  (a, b) => Number(a.name.includes('<')) - Number(b.name.includes('<')),
);

/** Removes the hash tags of a cluster (infra/redis/README.md#cluster). */
const toServerName = (name: string) =>
  name
    .replace(/^([a-z]{1,2}):\{c\d+\/\d+\}:([^:]+)/, '$1:{$2}')
    .replace(/:\{[cm][\d/]+\}/, '')
    .replace(/^\{(access:[\w-]+|alerts)\}/, '$1');

/** The key's registered family, or its prefix if the key is not registered. */
function familyOf(key: Buffer): string {
  const text = toServerName(key.toString('latin1'));
  return FAMILIES.find(({ pattern }) => pattern.test(text))?.name ?? `not registered: ${text.slice(0, 12)}`;
}
