import { randomUUID } from 'node:crypto';
import { openTestRedis, testRedis } from '@playline/testkit';
import { afterAll, describe, expect, it } from 'vitest';
import { hashToken } from './accounts/one-time-tokens.ts';
import type { OneTimeTokens, SessionStores, Sessions } from './index.ts';
import { openRedisSessions } from './redis/index.ts';
import { createMemorySessions } from './test/memory-sessions.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const base = `test-${randomUUID()}:`;
const { client: redis, close: disconnect } = openTestRedis();
const opened: SessionStores[] = [];
const empty = async (namespace: string) => {
  const keys = await redis.keys(`${namespace}*`);
  if (keys.length > 0) await redis.del(keys);
};
afterAll(async () => {
  for (const each of opened) await each.close();
  await empty(base);
  disconnect();
});

interface World {
  readonly sessions: Sessions;
  readonly oneTimeTokens: OneTimeTokens;
  empty(): Promise<void>;
}

async function openRedisWorld(wallClockMs: () => number): Promise<World> {
  const namespace = `${base}${randomUUID()}:`;
  const stores = await openRedisSessions({ ...testRedis(), namespace, wallClockMs });
  opened.push(stores);
  return { ...stores, empty: () => empty(namespace) };
}

async function openMemoryWorld(wallClockMs: () => number): Promise<World> {
  const stores = createMemorySessions({ wallClockMs });
  return { ...stores, empty: async () => stores.empty() };
}

const client = { userAgent: 'Firefox', address: '10.0.0.7' };

describe.each([
  ['memory', openMemoryWorld],
  ['redis', openRedisWorld],
])('sessions in %s', (_name, openWorld) => {
  async function setUp() {
    // Redis also expires tokens by its own clock, so the test clock starts at the current time.
    const clock = { at: Date.now() };
    const world = await openWorld(() => clock.at);
    const create = (accountId = 'ada') => world.sessions.create({ accountId, ...client });
    return { clock, ...world, create };
  }

  it('are found by a 256-bit token, of which only the hash is stored', async () => {
    const { sessions, create, clock } = await setUp();
    const { text, session } = await create();
    expect(Buffer.from(text, 'base64url')).toHaveLength(32);
    const times = { createdAt: clock.at, seenAt: clock.at, signedInAt: clock.at };
    expect(session).toEqual({ id: hashToken(text), accountId: 'ada', accountRevision: 0, ...client, ...times });
    expect(await sessions.find(text)).toEqual(session);
    for (const wrong of ['', 'x', session.id, `${text}A`]) expect(await sessions.find(wrong)).toBeNull();
  });

  it('store at most 200 characters of the user agent', async () => {
    const { sessions } = await setUp();
    const { session } = await sessions.create({ accountId: 'ada', userAgent: 'x'.repeat(5000), address: '' });
    expect(session.userAgent).toHaveLength(200);
  });

  it('update the last-used time at most once a minute', async () => {
    const { sessions, create, clock } = await setUp();
    const { text, session } = await create();
    clock.at += MINUTE - 1;
    expect((await sessions.find(text))?.seenAt).toBe(session.seenAt);
    clock.at += 1;
    expect((await sessions.find(text))?.seenAt).toBe(clock.at);
    expect((await sessions.list('ada'))[0]?.seenAt).toBe(clock.at);
  });

  it('end 12 hours after their last use', async () => {
    const { sessions, create, clock } = await setUp();
    const { text } = await create();
    clock.at += 12 * HOUR - 1;
    expect(await sessions.find(text)).not.toBeNull();
    clock.at += 12 * HOUR;
    expect(await sessions.find(text)).toBeNull();
    expect(await sessions.list('ada')).toEqual([]);
  });

  it('end after 7 days even if they are in use', async () => {
    const { sessions, create, clock } = await setUp();
    const { text } = await create();
    for (let hours = 0; hours < 7 * 24 - 1; hours++) {
      clock.at += HOUR;
      expect(await sessions.find(text)).not.toBeNull();
    }
    clock.at += HOUR;
    expect(await sessions.find(text)).toBeNull();
  });

  it('store when the person last proved their identity', async () => {
    const { sessions, create, clock } = await setUp();
    const { text, session } = await create();
    clock.at += HOUR;
    expect((await sessions.find(text))?.signedInAt).toBe(session.signedInAt);
    await Promise.all([sessions.markSignedIn(session.id), sessions.find(text)]);
    expect((await sessions.find(text))?.signedInAt).toBe(clock.at);
  });

  it('are listed per account, newest first, and can be ended individually or all except one', async () => {
    const { sessions, create, clock } = await setUp();
    const created = [];
    for (const _ of [1, 2, 3]) {
      created.push(await create());
      clock.at++;
    }
    const other = await create('bob');
    const ids = created.map(({ session }) => session.id);
    const listed = async () => (await sessions.list('ada')).map(({ id }) => id);
    expect(await listed()).toEqual(ids.toReversed());
    await sessions.end(ids[0]!);
    expect(await listed()).toEqual([ids[2], ids[1]]);
    await sessions.endAll('ada', ids[2]);
    expect(await listed()).toEqual([ids[2]]);
    await sessions.endAll('ada');
    for (const { text } of created) expect(await sessions.find(text)).toBeNull();
    expect(await sessions.find(other.text)).not.toBeNull();
  });

  it('are not revived by a concurrent request after they have ended', async () => {
    const { sessions, create, clock } = await setUp();
    const { text, session } = await create();
    clock.at += HOUR;
    const requests = Array.from({ length: 20 }, () => sessions.find(text));
    await Promise.all([...requests, sessions.end(session.id), sessions.markSignedIn(session.id)]);
    await sessions.markSignedIn(session.id);
    expect(await sessions.find(text)).toBeNull();
    expect(await sessions.list('ada')).toEqual([]);
  });

  it('end when the store is emptied, and new sessions can be created', async () => {
    const { sessions, create, ...world } = await setUp();
    const { text } = await create();
    await world.empty();
    expect(await sessions.find(text)).toBeNull();
    expect(await sessions.list('ada')).toEqual([]);
    expect(await sessions.find((await create()).text)).not.toBeNull();
  });
});

describe.each([
  ['memory', openMemoryWorld],
  ['redis', openRedisWorld],
])('one-time tokens in %s', (_name, openWorld) => {
  async function setUp() {
    const clock = { at: Date.now() };
    return { clock, ...(await openWorld(() => clock.at)) };
  }
  const wanted = { purpose: 'link', value: 'a value\nwith two lines', lifetimeS: 900 };

  it('have 256 bits, are not consumed by reading, and are valid only for their purpose', async () => {
    const { oneTimeTokens } = await setUp();
    const text = await oneTimeTokens.issue(wanted);
    expect(Buffer.from(text, 'base64url')).toHaveLength(32);
    for (const _ of [1, 2]) expect(await oneTimeTokens.read({ purpose: 'link', text })).toBe(wanted.value);
    expect(await oneTimeTokens.take({ purpose: 'other', text })).toBeNull();
    expect(await oneTimeTokens.take({ purpose: 'link', text })).toBe(wanted.value);
  });

  it('are consumed exactly once by concurrent callers', async () => {
    const { oneTimeTokens } = await setUp();
    for (const value of ['', 'x']) {
      const text = await oneTimeTokens.issue({ ...wanted, value });
      const take = () => oneTimeTokens.take({ purpose: 'link', text });
      const taken = await Promise.all(Array.from({ length: 50 }, take));
      expect(taken.filter((each) => each !== null)).toEqual([value]);
      expect(await oneTimeTokens.read({ purpose: 'link', text })).toBeNull();
    }
  });

  it('expire after their lifetime', async () => {
    const { oneTimeTokens, clock } = await setUp();
    const text = await oneTimeTokens.issue(wanted);
    clock.at += 900_000 - 1;
    expect(await oneTimeTokens.read({ purpose: 'link', text })).toBe(wanted.value);
    clock.at += 1;
    expect(await oneTimeTokens.read({ purpose: 'link', text })).toBeNull();
    expect(await oneTimeTokens.take({ purpose: 'link', text })).toBeNull();
  });

  it('that were created elsewhere can be used once within their lifetime', async () => {
    const { oneTimeTokens, clock } = await setUp();
    const spend = (text: string, purpose = 'form') => oneTimeTokens.spend({ purpose, text, lifetimeS: 60 });
    const spent = await Promise.all(Array.from({ length: 50 }, () => spend('a')));
    expect(spent.filter(Boolean)).toEqual([true]);
    expect(await spend('b')).toBe(true);
    expect(await spend('a', 'link')).toBe(true);
    clock.at += 60_000;
    expect(await spend('a')).toBe(true);
  });

  it('share the store with attempt counters, whose window starts with the first attempt', async () => {
    const { oneTimeTokens, clock } = await setUp();
    const count = (name = 'ada') => oneTimeTokens.countAttempt({ name, windowS: 900 });
    const counts = await Promise.all(Array.from({ length: 20 }, () => count()));
    expect(counts.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, at) => at + 1));
    expect(await count('bob')).toBe(1);
    clock.at += 900_000 - 1;
    expect(await count()).toBe(21);
    clock.at += 1;
    expect(await count()).toBe(1);
    await oneTimeTokens.resetAttempts('ada');
    expect(await count()).toBe(1);
  });
});

describe('session and token data in Redis', () => {
  it('contains no token and no login, and expires', async () => {
    const namespace = `${base}${randomUUID()}:`;
    const { sessions, oneTimeTokens, close } = await openRedisSessions({ ...testRedis(), namespace });
    const { text } = await sessions.create({ accountId: 'ada-id', ...client });
    const link = await oneTimeTokens.issue({ purpose: 'link', value: 'v', lifetimeS: 60 });
    await oneTimeTokens.spend({ purpose: 'form', text: 'form-token', lifetimeS: 60 });
    await oneTimeTokens.countAttempt({ name: 'login ada@example.com', windowS: 60 });
    const names = await redis.keys(`${namespace}*`);
    expect(names).toHaveLength(5);
    const stored: string[] = [...names];
    for (const name of names) {
      expect(await redis.pttl(name)).toBeGreaterThan(0);
      const type = await redis.type(name);
      if (type === 'hash') stored.push(JSON.stringify(await redis.hgetall(name)));
      if (type === 'string') stored.push((await redis.get(name))!);
    }
    for (const secret of [text, link, 'form-token', 'ada@example.com']) expect(stored.join(' ')).not.toContain(secret);
    await close();
  });

  it('is unavailable while Redis is down, so every call throws', async () => {
    const stores = await openRedisSessions({ url: 'redis://127.0.0.1:1', namespace: base });
    await expect(stores.sessions.find('x')).rejects.toThrow();
    await expect(stores.oneTimeTokens.countAttempt({ name: 'x', windowS: 1 })).rejects.toThrow();
    await expect(stores.oneTimeTokens.spend({ purpose: 'x', text: 'x', lifetimeS: 1 })).rejects.toThrow();
    await stores.close();
  });
});
