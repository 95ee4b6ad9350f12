import { randomUUID } from 'node:crypto';
import { openTestRedis, testRedis } from '@playline/testkit';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { openRedisKeyUsage, type RedisKeyUsage } from '../redis/index.ts';
import { createMemoryKeyUsage } from '../test/memory-usage.ts';
import { HOUR_MS, type KeyCounts, type KeyUsage, MINUTE_MS, minuteOf, NO_USE, toEnvironmentRate } from './key-usage.ts';

const base = `test-${randomUUID()}:`;
const { client: redis, close: disconnect } = openTestRedis();
const opened: RedisKeyUsage[] = [];
afterAll(async () => {
  for (const usage of opened) await usage.close();
  const keys = await redis.keys(`${base}*`);
  if (keys.length > 0) await redis.del(keys);
  disconnect();
});

type Open = (clock: { now: number }) => Promise<{ usage: KeyUsage; namespace: string }>;
const openInRedis: Open = async (clock) => {
  const namespace = `${base}${randomUUID()}:`;
  const usage = await openRedisKeyUsage({ ...testRedis(), namespace, wallClockMs: () => clock.now });
  opened.push(usage);
  return { usage, namespace };
};
const openInMemory: Open = async (clock) => ({
  usage: createMemoryKeyUsage({ wallClockMs: () => clock.now }),
  namespace: '',
});

const START = minuteOf(1_790_000_000_000);
const countsOf = (keyId: string, changes: Partial<KeyCounts> = {}): KeyCounts => ({
  keyId,
  uses: 1,
  refusals: 0,
  messages: 0,
  lastUsedAt: START,
  lastRefusal: null,
  ...changes,
});

describe.each([
  ['memory', openInMemory, 100],
  ['redis', openInRedis, 15],
] as const)('key usage in %s', (_name, open, numRuns) => {
  const setUp = async () => {
    const clock = { now: START };
    return { clock, ...(await open(clock)) };
  };

  it('adds up counts from several processes, and stores the latest use and refusal', async () => {
    const { usage } = await setUp();
    const late = { at: START + 9, reason: 'TOO_MANY_REQUESTS_ERROR', traceId: 'a'.repeat(32) };
    const early = { at: START + 1, reason: 'VALIDATION_ERROR', traceId: 'b'.repeat(32) };
    const first = countsOf('k', { uses: 5, refusals: 2, messages: 70, lastUsedAt: START + 9, lastRefusal: late });
    const second = countsOf('k', { uses: 3, refusals: 1, messages: 4, lastUsedAt: START + 1, lastRefusal: early });
    await usage.add({ minuteAt: START, keys: [first, countsOf('other')], environments: [] });
    await usage.add({ minuteAt: START, keys: [second], environments: [] });
    const found = await usage.readKeys(['k', 'unknown']);
    const counts = { usesOfHour: 8, refusalsOfHour: 3, messagesOfHour: 74, messagesOfDay: 74 };
    expect(found.get('k')).toEqual({ ...counts, lastUsedAt: START + 9, lastRefusal: late });
    expect(found.get('unknown')).toEqual(NO_USE);
  });

  it('excludes counts older than an hour, but retains the last use and refusal', async () => {
    const { usage, clock } = await setUp();
    const lastRefusal = { at: START, reason: 'VALIDATION_ERROR', traceId: 't' };
    await usage.add({ minuteAt: START, keys: [countsOf('k', { refusals: 1, lastRefusal })], environments: [] });
    clock.now = START + 59 * MINUTE_MS + 59_999;
    expect((await usage.readKeys(['k'])).get('k')).toMatchObject({ usesOfHour: 1, refusalsOfHour: 1 });
    clock.now = START + 60 * MINUTE_MS;
    expect((await usage.readKeys(['k'])).get('k')).toEqual({ ...NO_USE, lastUsedAt: START, lastRefusal });
  });

  it('returns every minute for each requested environment, oldest first', async () => {
    const { usage, clock } = await setUp();
    const toCounts = (id: string, accepted: number, rejected: number) => ({ environmentId: id, accepted, rejected });
    await usage.add({ minuteAt: START, keys: [], environments: [toCounts('demo', 10, 0), toCounts('demo-2', 1, 1)] });
    await usage.add({ minuteAt: START + 2 * MINUTE_MS, keys: [], environments: [toCounts('demo', 50, 20)] });
    clock.now = START + 3 * MINUTE_MS + 5;
    const found = await usage.readEnvironments(['demo', 'demo-2', 'none'], 4);
    const shown = (id: string) => found.get(id)?.map(({ accepted, rejected }) => [accepted, rejected]);
    expect(shown('demo')).toEqual([
      [10, 0],
      [0, 0],
      [50, 20],
      [0, 0],
    ]);
    expect(shown('demo-2')?.[0]).toEqual([1, 1]);
    expect(shown('none')?.flat()).toEqual([0, 0, 0, 0, 0, 0, 0, 0]);
    expect(found.get('demo')?.[0]?.minuteAt).toBe(START);
  });

  it('returns the same sums for any order and any split of the counts', async () => {
    const last = 1_500;
    const hourOf = (minute: number) => Math.floor((START + minute * MINUTE_MS) / HOUR_MS);
    const arbitrary = fc.array(
      fc.record({
        minute: fc.oneof(fc.integer({ min: last - 70, max: last }), fc.nat({ max: last })),
        key: fc.constantFrom('a', 'a-2', 'b'),
        uses: fc.integer({ min: 1, max: 50 }),
        refusals: fc.nat({ max: 50 }),
        messages: fc.nat({ max: 100 }),
        second: fc.nat({ max: 59 }),
      }),
      { maxLength: 12 },
    );
    await fc.assert(
      fc.asyncProperty(arbitrary, async (parts) => {
        const { usage, clock } = await setUp();
        for (const { minute, key, second, ...counts } of parts) {
          const minuteAt = START + minute * MINUTE_MS;
          const keys = [countsOf(key, { ...counts, lastUsedAt: minuteAt + second * 1000 })];
          await usage.add({ minuteAt, keys, environments: [] });
        }
        clock.now = START + last * MINUTE_MS;
        const found = await usage.readKeys(['a', 'a-2', 'b']);
        for (const [key, use] of found) {
          const matching = parts.filter((part) => part.key === key);
          const recent = matching.filter(({ minute }) => minute > last - 60);
          expect(use.usesOfHour).toBe(recent.reduce((sum, { uses }) => sum + uses, 0));
          expect(use.refusalsOfHour).toBe(recent.reduce((sum, { refusals }) => sum + refusals, 0));
          expect(use.messagesOfHour).toBe(recent.reduce((sum, { messages }) => sum + messages, 0));
          const ofDay = matching.filter(({ minute }) => hourOf(minute) > hourOf(last) - 24);
          expect(use.messagesOfDay).toBe(ofDay.reduce((sum, { messages }) => sum + messages, 0));
          const times = matching.map(({ minute, second }) => START + minute * MINUTE_MS + second * 1000);
          expect(use.lastUsedAt).toBe(times.length === 0 ? null : Math.max(...times));
        }
      }),
      { numRuns },
    );
  });
});

describe('key usage in Redis', () => {
  it("expires each minute's counts after two hours, and each hour's counts after 25 hours", async () => {
    const { usage, namespace } = await openInRedis({ now: START });
    const keys = Array.from({ length: 1_200 }, (_, index) => countsOf(`k-${index}`, { messages: 1 }));
    const environments = [{ environmentId: 'demo', accepted: 1, rejected: 0 }];
    await usage.add({ minuteAt: START, keys, environments });
    const names = (await redis.keys(`${namespace}*`)).map((name) => name.slice(namespace.length)).sort();
    const minute = START / MINUTE_MS;
    const hours = `access:usage:key-hours:${Math.floor(START / HOUR_MS)}`;
    expect(names).toEqual([
      `access:usage:environments:${minute}`,
      hours,
      `access:usage:keys:${minute}`,
      'access:usage:last-uses',
    ]);
    for (const name of names.slice(0, 3)) {
      const lifetimeS = name === hours ? 90_000 : 7_200;
      const ttl = await redis.ttl(namespace + name);
      expect(ttl).toBeGreaterThan(lifetimeS - 100);
      expect(ttl).toBeLessThanOrEqual(lifetimeS);
    }
    const found = await usage.readKeys(keys.map(({ keyId }) => keyId));
    expect([...found.values()].every(({ usesOfHour }) => usesOfHour === 1)).toBe(true);
    expect((await usage.readEnvironments(['demo'], 1)).get('demo')).toEqual([
      { minuteAt: START, accepted: 1, rejected: 0 },
    ]);
  });
});

describe('toEnvironmentRate', () => {
  it('uses only complete minutes, and returns 0 if there are no messages', () => {
    const toMinute = (accepted: number, rejected: number) => ({ minuteAt: START, accepted, rejected });
    const minutes = [toMinute(60, 20), toMinute(60, 20)];
    expect(toEnvironmentRate([...minutes, toMinute(999, 999)])).toEqual({ perSecond: 1, rejectedShare: 0.25 });
    expect(toEnvironmentRate([toMinute(5, 5)])).toEqual({ perSecond: 0, rejectedShare: 0 });
  });
});
