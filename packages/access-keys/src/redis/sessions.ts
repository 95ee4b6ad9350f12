// Sessions and one-time tokens in Redis; infra/redis/README.md lists the keys.
import { type Redis, toFamily } from '@playline/stores/redis';
import { createToken, hashToken, type OneTimeTokens } from '../accounts/one-time-tokens.ts';
import {
  endOfSession,
  SEEN_INTERVAL_MS,
  type SessionRecord,
  type SessionStores,
  type Sessions,
  toSession,
} from '../accounts/sessions.ts';
import { openConnection, type RedisAccessOptions } from './connection.ts';

// Scripts that keep a session and its account's session list consistent. KEYS: session, list.
/** ARGV: key prefix, id, record, seenAt, signedInAt, lifetime in ms. Also removes expired sessions from the list. */
const CREATE_SESSION = `#!lua
for _, id in ipairs(redis.call('SMEMBERS', KEYS[2])) do
  if redis.call('EXISTS', ARGV[1] .. id) == 0 then redis.call('SREM', KEYS[2], id) end
end
redis.call('HSET', KEYS[1], 'record', ARGV[3], 'seenAt', ARGV[4], 'signedInAt', ARGV[5])
redis.call('PEXPIRE', KEYS[1], ARGV[6])
redis.call('SADD', KEYS[2], ARGV[2])
if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[6]) then redis.call('PEXPIRE', KEYS[2], ARGV[6]) end
return 1`;

/** ARGV: field, timestamp, remaining lifetime in ms. Has no effect on an ended session. */
const CHANGE_SESSION = `#!lua
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[2], ARGV[3]) end
return 1`;

/** ARGV: id. */
const END_SESSION = `#!lua flags=allow-oom
redis.call('SREM', KEYS[2], ARGV[1])
return redis.call('DEL', KEYS[1])`;

/** KEYS: the account's session list, then a missing key if the slot may move. ARGV: key prefix, id of the session to keep, or ''. */
const END_SESSIONS = `#!lua flags=allow-oom
for _, id in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  if id ~= ARGV[2] then
    redis.call('DEL', ARGV[1] .. id)
    redis.call('SREM', KEYS[1], id)
  end
end
return 1`;

/** Tokens are stored as `<expiry> <value>` and expire by the clock of this process. KEYS: token. ARGV: now. */
const VALID_TOKEN = `
local function valid(now)
  local text = redis.call('GET', KEYS[1])
  if not text then return nil end
  local ends, value = string.match(text, '^(%d+) (.*)$')
  if tonumber(ends) <= tonumber(now) then return nil end
  return value, ends
end
`;

const READ_TOKEN = `${VALID_TOKEN}
return (valid(ARGV[1]))`;

const TAKE_TOKEN = `${VALID_TOKEN}
local value = valid(ARGV[1])
redis.call('DEL', KEYS[1])
return value`;

/** ARGV: now, expiry time, lifetime in ms. Returns 1 to the first caller. */
const SPEND_TOKEN = `${VALID_TOKEN}
if valid(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[2] .. ' ', 'PX', ARGV[3])
return 1`;

/** ARGV: now, end of a new window, window length in ms. Returns the count. */
const COUNT_ATTEMPT = `${VALID_TOKEN}
local count, ends = valid(ARGV[1])
if not count then
  redis.call('SET', KEYS[1], ARGV[2] .. ' 1', 'PX', ARGV[3])
  return 1
end
redis.call('SET', KEYS[1], ends .. ' ' .. (tonumber(count) + 1), 'KEEPTTL')
return tonumber(count) + 1`;

interface RedisLocation {
  readonly redis: Redis;
  /** Start of the names of all session keys, and of all token keys. */
  readonly start: string;
  readonly wallClockMs: () => number;
}

/** Sessions lost by Redis count as ended. Waits up to a second for Redis. While Redis is down, every call throws. */
export async function openRedisSessions(
  options: RedisAccessOptions & { readonly wallClockMs?: () => number },
): Promise<SessionStores> {
  const { redis, ready, close } = await openConnection(options);
  const wallClockMs = options.wallClockMs ?? Date.now;
  const start = `${toFamily(options, 'access:session')}:`;
  // While a slot moves between two nodes, Redis refuses scripts that name a missing key.
  const absent = (options.cells ?? 0) > 0 ? [`${start}absent`] : [];
  const sessions = createSessions({ redis, start, absent, wallClockMs });
  const oneTimeTokens = createTokens({ redis, start: `${options.namespace ?? ''}access:one-time:`, wallClockMs });
  return { sessions, oneTimeTokens, ready, close };
}

function createSessions({
  redis,
  start,
  absent,
  wallClockMs,
}: RedisLocation & { readonly absent: readonly string[] }): Sessions {
  const listOf = (accountId: string) => `${start}of:${accountId}`;
  const findLive = async (id: string): Promise<SessionRecord | null> => {
    const { record, seenAt, signedInAt } = await redis.hgetall(start + id);
    if (record === undefined) return null;
    const found = { ...JSON.parse(record), seenAt: Number(seenAt), signedInAt: Number(signedInAt) } as SessionRecord;
    return endOfSession(found) > wallClockMs() ? found : null;
  };
  const lifetimeOf = (record: SessionRecord) => Math.max(1, endOfSession(record) - wallClockMs());
  // Writes a single field, so that concurrent requests do not overwrite each other's changes.
  const change = async (found: SessionRecord, name: 'seenAt' | 'signedInAt') => {
    const changed = { ...found, [name]: wallClockMs() };
    const keys = [start + found.id, listOf(found.accountId)];
    const values = [name, changed[name]!, lifetimeOf(changed)];
    const reply = await redis.call('EVAL', [CHANGE_SESSION, 2, ...keys, ...values]);
    return reply === 1 ? changed : null;
  };
  return {
    create: async (wanted) => {
      const text = createToken();
      const session = toSession(hashToken(text), wanted, wallClockMs());
      const keys = [start + session.id, listOf(session.accountId)];
      const times = [session.seenAt, session.signedInAt, lifetimeOf(session)];
      const values = [start, session.id, JSON.stringify(session), ...times];
      await redis.call('EVAL', [CREATE_SESSION, 2, ...keys, ...values]);
      return { text, session };
    },
    find: async (text) => {
      const found = await findLive(hashToken(text));
      if (found === null || wallClockMs() - found.seenAt < SEEN_INTERVAL_MS) return found;
      return change(found, 'seenAt');
    },
    markSignedIn: async (id) => {
      const found = await findLive(id);
      if (found !== null) await change(found, 'signedInAt');
    },
    list: async (accountId) => {
      const ids = await redis.smembers(listOf(accountId));
      const records = await Promise.all(ids.map(findLive));
      return records.filter((record) => record !== null).toSorted((a, b) => b.createdAt - a.createdAt);
    },
    end: async (id) => {
      const found = await findLive(id);
      if (found !== null) await redis.eval(END_SESSION, 2, start + id, listOf(found.accountId), id);
    },
    endAll: async (accountId, exceptId) => {
      const keys = [listOf(accountId), ...absent];
      await redis.call('EVAL', [END_SESSIONS, keys.length, ...keys, start, exceptId ?? '']);
    },
  };
}

function createTokens({ redis, start, wallClockMs }: RedisLocation): OneTimeTokens {
  const nameOf = (purpose: string, text: string) => `${start}${purpose}:${hashToken(text)}`;
  const attemptsOf = (name: string) => `${start}attempts:${hashToken(name)}`;
  /** Returns the current time, the expiry time and the lifetime in milliseconds. */
  const timesOf = (lifetimeS: number) => {
    const nowAt = wallClockMs();
    return [nowAt, nowAt + lifetimeS * 1000, lifetimeS * 1000];
  };
  return {
    issue: async ({ purpose, value, lifetimeS }) => {
      const text = createToken();
      const [, endsAt, lifetimeMs] = timesOf(lifetimeS);
      await redis.set(nameOf(purpose, text), `${endsAt} ${value}`, 'PX', lifetimeMs!);
      return text;
    },
    read: async ({ purpose, text }) => {
      const reply = await redis.eval(READ_TOKEN, 1, nameOf(purpose, text), wallClockMs());
      return reply as string | null;
    },
    take: async ({ purpose, text }) => {
      const reply = await redis.eval(TAKE_TOKEN, 1, nameOf(purpose, text), wallClockMs());
      return reply as string | null;
    },
    spend: async ({ purpose, text, lifetimeS }) => {
      const name = nameOf(`spent:${purpose}`, text);
      return (await redis.call('EVAL', [SPEND_TOKEN, 1, name, ...timesOf(lifetimeS)])) === 1;
    },
    countAttempt: async ({ name, windowS }) =>
      Number(await redis.call('EVAL', [COUNT_ATTEMPT, 1, attemptsOf(name), ...timesOf(windowS)])),
    resetAttempts: async (name) => void (await redis.del(attemptsOf(name))),
  };
}
