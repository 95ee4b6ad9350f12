import type { Redis } from '@playline/stores/redis';
import { createToken, hashToken, type OneTimeTexts } from '../accounts/one-time-texts.ts';
import {
  endOfSession,
  type OpenSessions,
  SEEN_EVERY_MS,
  type SessionRecord,
  type Sessions,
  toSession,
} from '../accounts/sessions.ts';
import { openConnection, type RedisAccessOptions } from './connection.ts';
import * as scripts from './session-scripts.ts';

export interface RedisSessionsOptions extends RedisAccessOptions {
  /** Sessions and texts end by it. */
  readonly wallClockMs?: () => number;
}

interface Place {
  readonly redis: Redis;
  readonly namespace: string;
  readonly wallClockMs: () => number;
}

/**
 * Sessions and one-time texts in Redis: `access:session:<hash>` holds a session, `access:session:of:<account>` which
 * ones an account has; `access:one-time:<purpose>:<hash>` the value behind a text,
 * `access:one-time:spent:<purpose>:<hash>` that one was used, `access:one-time:attempts:<hash>` how often something was
 * tried. They are stored nowhere else: what Redis loses has ended. Waits a second for Redis, then opens without it;
 * every call then throws.
 */
export async function openRedisSessions(options: RedisSessionsOptions): Promise<OpenSessions> {
  const { redis, ready, close } = await openConnection(options);
  const place = { redis, namespace: options.namespace ?? '', wallClockMs: options.wallClockMs ?? Date.now };
  return { sessions: createSessions(place), oneTimeTexts: createTexts(place), ready, close };
}

function createSessions({ redis, namespace, wallClockMs }: Place): Sessions {
  const start = `${namespace}access:session:`;
  const listOf = (accountId: string) => `${start}of:${accountId}`;
  const findLive = async (id: string): Promise<SessionRecord | null> => {
    const { record, seenAt, signedInAt } = await redis.hgetall(start + id);
    if (record === undefined) return null;
    const found = { ...JSON.parse(record), seenAt: Number(seenAt), signedInAt: Number(signedInAt) } as SessionRecord;
    return endOfSession(found) > wallClockMs() ? found : null;
  };
  const lifetimeOf = (record: SessionRecord) => Math.max(1, endOfSession(record) - wallClockMs());
  // Changes one time only, so that concurrent requests do not undo each other.
  const change = async (found: SessionRecord, name: 'seenAt' | 'signedInAt') => {
    const changed = { ...found, [name]: wallClockMs() };
    const keys = [start + found.id, listOf(found.accountId)];
    const given = [name, changed[name]!, lifetimeOf(changed)];
    const reply = await redis.call('EVAL', [scripts.CHANGE_SESSION, 2, ...keys, ...given]);
    return reply === 1 ? changed : null;
  };
  return {
    create: async (wanted) => {
      const text = createToken();
      const session = toSession(hashToken(text), wanted, wallClockMs());
      const keys = [start + session.id, listOf(session.accountId)];
      const times = [session.seenAt, session.signedInAt, lifetimeOf(session)];
      const given = [start, session.id, JSON.stringify(session), ...times];
      await redis.call('EVAL', [scripts.CREATE_SESSION, 2, ...keys, ...given]);
      return { text, session };
    },
    find: async (text) => {
      const found = await findLive(hashToken(text));
      if (found === null || wallClockMs() - found.seenAt < SEEN_EVERY_MS) return found;
      return change(found, 'seenAt');
    },
    signedInNow: async (id) => {
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
      if (found !== null) await redis.eval(scripts.END_SESSION, 2, start + id, listOf(found.accountId), id);
    },
    endAll: async (accountId, exceptId) => {
      await redis.eval(scripts.END_SESSIONS, 1, listOf(accountId), start, exceptId ?? '');
    },
  };
}

function createTexts({ redis, namespace, wallClockMs }: Place): OneTimeTexts {
  const start = `${namespace}access:one-time:`;
  const nameOf = (purpose: string, text: string) => `${start}${purpose}:${hashToken(text)}`;
  const attemptsOf = (name: string) => `${start}attempts:${hashToken(name)}`;
  /** The present time, the end of the lifetime, and its length in milliseconds. */
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
    look: async ({ purpose, text }) => {
      const reply = await redis.eval(scripts.LOOK_TEXT, 1, nameOf(purpose, text), wallClockMs());
      return reply as string | null;
    },
    take: async ({ purpose, text }) => {
      const reply = await redis.eval(scripts.TAKE_TEXT, 1, nameOf(purpose, text), wallClockMs());
      return reply as string | null;
    },
    spend: async ({ purpose, text, lifetimeS }) => {
      const name = nameOf(`spent:${purpose}`, text);
      return (await redis.call('EVAL', [scripts.SPEND_TEXT, 1, name, ...timesOf(lifetimeS)])) === 1;
    },
    countAttempt: async ({ name, windowS }) =>
      Number(await redis.call('EVAL', [scripts.COUNT_ATTEMPT, 1, attemptsOf(name), ...timesOf(windowS)])),
    forgetAttempts: async (name) => void (await redis.del(attemptsOf(name))),
  };
}
