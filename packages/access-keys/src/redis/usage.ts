// Counts of key use in Redis; infra/redis/README.md lists the keys.
import type { Redis } from '@playline/stores/redis';
import {
  HOUR_MINUTES,
  type KeyCounts,
  type KeyUsage,
  type KeyUse,
  MINUTE_MS,
  MINUTES_KEPT,
  minutesUpTo,
  type Refusal,
  type UsageCounts,
} from '../usage/key-usage.ts';
import { openConnection, type RedisAccessOptions } from './connection.ts';

export type RedisKeyUsage = Awaited<ReturnType<typeof openRedisKeyUsage>>;

/** Bounds a script to a few milliseconds. */
const KEYS_PER_CALL = 500;
/** Bounds a reply to 100,000 numbers. */
const NAMES_PER_QUERY = 500;
const KEPT_S = (MINUTES_KEPT * MINUTE_MS) / 1000;

/**
 * KEYS: counts of keys and of environments of the minute, last uses, last refusals. ARGV: JSON of the counts, seconds to
 * keep them. Times are texts, because Lua would lose digits.
 */
const ADD_COUNTS = `
local given = cjson.decode(ARGV[1])
local function count(name, field, by)
  if by > 0 then redis.call('HINCRBY', name, field, by) end
end
local function isLater(name, id, at)
  local current = redis.call('HGET', name, id)
  return not current or tonumber(string.match(current, '^%d+')) <= tonumber(at)
end
for _, key in ipairs(given.keys) do
  count(KEYS[1], key.id .. ' u', key.uses)
  count(KEYS[1], key.id .. ' r', key.refusals)
  if isLater(KEYS[3], key.id, key.usedAt) then redis.call('HSET', KEYS[3], key.id, key.usedAt) end
  if key.refusal and isLater(KEYS[4], key.id, key.refusedAt) then redis.call('HSET', KEYS[4], key.id, key.refusal) end
end
for _, environment in ipairs(given.environments) do
  count(KEYS[2], environment.id .. ' a', environment.accepted)
  count(KEYS[2], environment.id .. ' r', environment.rejected)
end
redis.call('EXPIRE', KEYS[1], ARGV[2])
redis.call('EXPIRE', KEYS[2], ARGV[2])
return 1`;

/** Waits a second for Redis, then opens without it. */
export async function openRedisKeyUsage(options: RedisAccessOptions & { readonly wallClockMs?: () => number }) {
  const { redis, ready, close } = await openConnection(options);
  const names = createUsageNames(options.namespace ?? '');
  return { ...createKeyUsage(redis, names, options.wallClockMs ?? Date.now), ready, close };
}

function createUsageNames(namespace: string) {
  const usage = `${namespace}access:usage`;
  return {
    keys: (minuteAt: number) => `${usage}:keys:${minuteAt / MINUTE_MS}`,
    environments: (minuteAt: number) => `${usage}:environments:${minuteAt / MINUTE_MS}`,
    lastUses: `${usage}:last-uses`,
    lastRefusals: `${usage}:last-refusals`,
  };
}

type UsageNames = ReturnType<typeof createUsageNames>;

function createKeyUsage(redis: Redis, names: UsageNames, wallClockMs: () => number): KeyUsage {
  const addSome = (minuteAt: number, given: Omit<UsageCounts, 'minuteAt'>) => {
    const keys = [names.keys(minuteAt), names.environments(minuteAt), names.lastUses, names.lastRefusals];
    const text = JSON.stringify({
      keys: given.keys.map(toGivenKey),
      environments: given.environments.map(({ environmentId: id, ...counts }) => ({ id, ...counts })),
    });
    return redis.call('EVAL', [ADD_COUNTS, keys.length, ...keys, text, KEPT_S]);
  };
  const readFields = async (hash: string, fields: readonly string[]) =>
    (await redis.call('HMGET', [hash, ...fields])) as (string | null)[];
  const readMinutes = async (hashes: readonly string[], fields: readonly string[]) =>
    Promise.all(hashes.map(async (hash) => (await readFields(hash, fields)).map(Number)));
  return {
    add: async ({ minuteAt, keys, environments }) => {
      for (let at = 0; at === 0 || at < keys.length; at += KEYS_PER_CALL)
        await addSome(minuteAt, {
          keys: keys.slice(at, at + KEYS_PER_CALL),
          environments: at === 0 ? environments : [],
        });
    },
    readKeys: (keyIds) =>
      inPieces(keyIds, async (ids) => {
        const hashes = minutesUpTo(wallClockMs(), HOUR_MINUTES).map(names.keys);
        const [minutes, uses, refusals] = await Promise.all([
          readMinutes(hashes, fieldsOf(ids, 'u', 'r')),
          readFields(names.lastUses, ids),
          readFields(names.lastRefusals, ids),
        ]);
        const sum = (field: number) => minutes.reduce((total, counts) => total + counts[field]!, 0);
        return ids.map((id, index): [string, KeyUse] => {
          const [usesOfHour, refusalsOfHour] = [sum(2 * index), sum(2 * index + 1)];
          const lastUsedAt = uses[index] == null ? null : Number(uses[index]);
          return [id, { lastUsedAt, usesOfHour, refusalsOfHour, lastRefusal: parseRefusal(refusals[index] ?? null) }];
        });
      }),
    readEnvironments: (environmentIds, count) =>
      inPieces(environmentIds, async (ids) => {
        const starts = minutesUpTo(wallClockMs(), count);
        const minutes = await readMinutes(starts.map(names.environments), fieldsOf(ids, 'a', 'r'));
        const minuteOf = (index: number) => (minuteAt: number, at: number) => {
          const [accepted, rejected] = minutes[at]!.slice(2 * index, 2 * index + 2) as [number, number];
          return { minuteAt, accepted, rejected };
        };
        return ids.map((id, index) => [id, starts.map(minuteOf(index))]);
      }),
  };
}

const fieldsOf = (ids: readonly string[], ...suffixes: readonly string[]): string[] =>
  ids.flatMap((id) => suffixes.map((suffix) => `${id} ${suffix}`));

async function inPieces<T>(
  ids: readonly string[],
  read: (ids: readonly string[]) => Promise<(readonly [string, T])[]>,
): Promise<ReadonlyMap<string, T>> {
  const found = new Map<string, T>();
  for (let at = 0; at < ids.length; at += NAMES_PER_QUERY)
    for (const [id, value] of await read(ids.slice(at, at + NAMES_PER_QUERY))) found.set(id, value);
  return found;
}

function toGivenKey({ keyId: id, uses, refusals, lastUsedAt, lastRefusal }: KeyCounts) {
  const shown = { id, uses, refusals, usedAt: String(lastUsedAt) };
  if (lastRefusal === null) return shown;
  const { at, traceId, reason } = lastRefusal;
  return { ...shown, refusedAt: String(at), refusal: `${at} ${traceId} ${reason}` };
}

function parseRefusal(text: string | null): Refusal | null {
  const [, at, traceId, reason] = /^(\d+) (\S*) (.*)$/s.exec(text ?? '') ?? [];
  return at === undefined ? null : { at: Number(at), traceId: traceId!, reason: reason! };
}
