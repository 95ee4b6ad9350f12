// Key usage counts in Redis; infra/redis/README.md lists the keys.
import { type Redis, toFamily } from '@playline/stores/redis';
import {
  DAY_HOURS,
  HOUR_MINUTES,
  HOUR_MS,
  hoursUpTo,
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

/** Limits a script to a few milliseconds. */
const KEYS_PER_CALL = 500;
/** Limits a reply to 100,000 numbers. */
const NAMES_PER_QUERY = 500;
const RETENTION_S = (MINUTES_KEPT * MINUTE_MS) / 1000;
const DAY_RETENTION_S = ((DAY_HOURS + 1) * HOUR_MS) / 1000;

/**
 * KEYS: key counts and environment counts for the minute, last uses, last refusals, key counts for the hour. ARGV:
 * counts as JSON, retention of minutes and of hours in seconds. Timestamps are strings, because Lua numbers would lose digits.
 */
const ADD_COUNTS = `
local counts = cjson.decode(ARGV[1])
local function add(name, field, by)
  if by > 0 then redis.call('HINCRBY', name, field, by) end
end
local function isLater(name, id, at)
  local current = redis.call('HGET', name, id)
  return not current or tonumber(string.match(current, '^%d+')) <= tonumber(at)
end
for _, key in ipairs(counts.keys) do
  add(KEYS[1], key.id .. ' u', key.uses)
  add(KEYS[1], key.id .. ' r', key.refusals)
  add(KEYS[1], key.id .. ' m', key.messages)
  add(KEYS[5], key.id, key.messages)
  if isLater(KEYS[3], key.id, key.usedAt) then redis.call('HSET', KEYS[3], key.id, key.usedAt) end
  if key.refusal and isLater(KEYS[4], key.id, key.refusedAt) then redis.call('HSET', KEYS[4], key.id, key.refusal) end
end
for _, environment in ipairs(counts.environments) do
  add(KEYS[2], environment.id .. ' a', environment.accepted)
  add(KEYS[2], environment.id .. ' r', environment.rejected)
end
redis.call('EXPIRE', KEYS[1], ARGV[2])
redis.call('EXPIRE', KEYS[2], ARGV[2])
redis.call('EXPIRE', KEYS[5], ARGV[3])
return 1`;

/** Waits up to a second for Redis, and opens even if Redis is down. */
export async function openRedisKeyUsage(options: RedisAccessOptions & { readonly wallClockMs?: () => number }) {
  const { redis, ready, close } = await openConnection(options);
  const names = createUsageNames(toFamily(options, 'access:usage'));
  return { ...createKeyUsage(redis, names, options.wallClockMs ?? Date.now), ready, close };
}

function createUsageNames(usage: string) {
  return {
    keys: (minuteAt: number) => `${usage}:keys:${minuteAt / MINUTE_MS}`,
    environments: (minuteAt: number) => `${usage}:environments:${minuteAt / MINUTE_MS}`,
    hours: (hourAt: number) => `${usage}:key-hours:${hourAt / HOUR_MS}`,
    lastUses: `${usage}:last-uses`,
    lastRefusals: `${usage}:last-refusals`,
  };
}

type UsageNames = ReturnType<typeof createUsageNames>;

function createKeyUsage(redis: Redis, names: UsageNames, wallClockMs: () => number): KeyUsage {
  const addChunk = (minuteAt: number, counts: Omit<UsageCounts, 'minuteAt'>) => {
    const hour = names.hours(Math.floor(minuteAt / HOUR_MS) * HOUR_MS);
    const keys = [names.keys(minuteAt), names.environments(minuteAt), names.lastUses, names.lastRefusals, hour];
    const text = JSON.stringify({
      keys: counts.keys.map(toKeyArgument),
      environments: counts.environments.map(({ environmentId: id, ...rest }) => ({ id, ...rest })),
    });
    return redis.call('EVAL', [ADD_COUNTS, keys.length, ...keys, text, RETENTION_S, DAY_RETENTION_S]);
  };
  const readFields = async (hash: string, fields: readonly string[]) =>
    (await redis.call('HMGET', [hash, ...fields])) as (string | null)[];
  const readMinutes = async (hashes: readonly string[], fields: readonly string[]) =>
    Promise.all(hashes.map(async (hash) => (await readFields(hash, fields)).map(Number)));
  return {
    add: async ({ minuteAt, keys, environments }) => {
      for (let at = 0; at === 0 || at < keys.length; at += KEYS_PER_CALL)
        await addChunk(minuteAt, {
          keys: keys.slice(at, at + KEYS_PER_CALL),
          environments: at === 0 ? environments : [],
        });
    },
    readKeys: (keyIds) =>
      inChunks(keyIds, async (ids) => {
        const hashes = minutesUpTo(wallClockMs(), HOUR_MINUTES).map(names.keys);
        const [minutes, hours, uses, refusals] = await Promise.all([
          readMinutes(hashes, fieldsOf(ids, 'u', 'r', 'm')),
          readMinutes(hoursUpTo(wallClockMs()).map(names.hours), ids),
          readFields(names.lastUses, ids),
          readFields(names.lastRefusals, ids),
        ]);
        const sum = (counts: readonly number[][], field: number) =>
          counts.reduce((total, each) => total + each[field]!, 0);
        return ids.map((id, index): [string, KeyUse] => {
          const [usesOfHour, refusalsOfHour, messagesOfHour] = [0, 1, 2].map((field) =>
            sum(minutes, 3 * index + field),
          );
          const ofHour = { usesOfHour: usesOfHour!, refusalsOfHour: refusalsOfHour!, messagesOfHour: messagesOfHour! };
          const lastUsedAt = uses[index] == null ? null : Number(uses[index]);
          const lastRefusal = parseRefusal(refusals[index] ?? null);
          return [id, { lastUsedAt, ...ofHour, messagesOfDay: sum(hours, index), lastRefusal }];
        });
      }),
    readEnvironments: (environmentIds, count) =>
      inChunks(environmentIds, async (ids) => {
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

async function inChunks<T>(
  ids: readonly string[],
  read: (ids: readonly string[]) => Promise<(readonly [string, T])[]>,
): Promise<ReadonlyMap<string, T>> {
  const found = new Map<string, T>();
  for (let at = 0; at < ids.length; at += NAMES_PER_QUERY)
    for (const [id, value] of await read(ids.slice(at, at + NAMES_PER_QUERY))) found.set(id, value);
  return found;
}

function toKeyArgument({ keyId: id, uses, refusals, messages, lastUsedAt, lastRefusal }: KeyCounts) {
  const use = { id, uses, refusals, messages, usedAt: String(lastUsedAt) };
  if (lastRefusal === null) return use;
  const { at, traceId, reason } = lastRefusal;
  return { ...use, refusedAt: String(at), refusal: `${at} ${traceId} ${reason}` };
}

function parseRefusal(text: string | null): Refusal | null {
  const [, at, traceId, reason] = /^(\d+) (\S*) (.*)$/s.exec(text ?? '') ?? [];
  return at === undefined ? null : { at: Number(at), traceId: traceId!, reason: reason! };
}
