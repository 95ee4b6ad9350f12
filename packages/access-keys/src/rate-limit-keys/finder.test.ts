import { hang } from '@playline/testkit/hang';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createKeyText, createRateLimitKeyText, isRateLimitKeyText } from '../key-text.ts';
import { createMemoryRecordLog, createMemoryRecords } from '../memory/index.ts';
import { catchUpRecords } from '../records/level.ts';
import { openRecordCopy } from '../records/record-copy.ts';
import { createRecordStore } from '../records/record-store.ts';
import { KeyStoreFault } from '../verifier.ts';
import { createRateLimitKeyFinder } from './finder.ts';
import { createRateLimitKey, refreshRateLimitKey, revokeRateLimitKey } from './operations.ts';
import { RATE_LIMIT_KEYS, type RateLimitKeyRecord } from './rate-limit-key.ts';

const prefix = 'svcapik';
const plan = { partner: 'Acme', calls: 5, windowS: 60, expiresAt: null };
const guess = () => createRateLimitKeyText(prefix);

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

async function setUp() {
  const [view, log] = [createMemoryRecords(RATE_LIMIT_KEYS), createMemoryRecordLog<RateLimitKeyRecord>()];
  await catchUpRecords({ view, log });
  const store = createRecordStore(RATE_LIMIT_KEYS, { view, log }, { changedBy: 'ada', requestId: 'r' });
  const world = { now: 0, at: 1_000_000, mode: 'up' as 'up' | 'down' | 'hangs', looks: 0 };
  const readSince: typeof view.readSince = async (version) => {
    world.looks++;
    if (world.mode === 'down') throw new Error('refused');
    if (world.mode === 'hangs') return hang();
    return view.readSince(version);
  };
  const copy = openRecordCopy({ view: { readSince }, now: () => world.now, lookEveryMs: 0 });
  const find = createRateLimitKeyFinder({ copy, prefix, wallClockMs: () => world.at });
  const context = { store, prefix };
  return { world, view, log, context, copy, find, made: await createRateLimitKey(context, plan) };
}

describe('the text of a rate limit key', () => {
  it('is rl_, the prefix, 30 random characters and their checksum, and no key of an environment', () => {
    const text = guess();
    expect(text).toMatch(/^rl_svcapik-[0-9A-Za-z]{36}$/);
    expect(isRateLimitKeyText(prefix, text)).toBe(true);
    const last = text.endsWith('a') ? 'b' : 'a';
    const secret = createKeyText(prefix, { kind: 'secret', environment: 'production' });
    for (const wrong of ['', 'hello', text.slice(0, -1) + last, text.replace('rl_', 'sk_'), secret])
      expect(isRateLimitKeyText(prefix, wrong)).toBe(false);
  });

  it('is nowhere but with its owner: the log has its hash alone', async () => {
    const { log, made } = await setUp();
    expect(JSON.stringify(log.appended)).not.toContain(made.key.slice(-36));
    expect(made.key.slice(-4)).toBe(made.record.last4);
  });
});

describe('a process that finds rate limit keys', () => {
  it('finds a key with its plan, and asks nothing for one of the wrong form', async () => {
    const { find, made, world } = await setUp();
    expect(await find('hello')).toBeNull();
    expect(world.looks).toBe(0);
    expect(await find(made.key)).toEqual(made.record);
  });

  it('takes a key that was made this moment, and asks once for a thousand guesses at once', async () => {
    const { find, context, world } = await setUp();
    await find(guess());
    const fresh = await createRateLimitKey(context, plan);
    const looks = world.looks;
    const guesses = Promise.all(Array.from({ length: 1000 }, () => find(guess())));
    expect(await find(fresh.key)).toEqual(fresh.record);
    expect(new Set(await guesses)).toEqual(new Set([null]));
    expect(world.looks - looks).toBeLessThanOrEqual(2);
  });

  it('ends a refreshed and a revoked key within 500 ms, and takes the successor under the same id', async () => {
    const { find, context, made, world } = await setUp();
    await find(made.key);
    const next = await refreshRateLimitKey(context, { keyId: made.record.keyId, calls: 9 });
    expect(next.record).toMatchObject({ keyId: made.record.keyId, calls: 9, windowS: 60, revision: 2 });
    world.now = 501;
    expect(await find(made.key)).toBeNull();
    expect(await find(next.key)).toEqual(next.record);
    await revokeRateLimitKey(context, made.record.keyId);
    world.now = 1002;
    expect(await find(next.key)).toBeNull();
    await expect(refreshRateLimitKey(context, { keyId: made.record.keyId })).rejects.toMatchObject({
      code: 'CONFLICT_ERROR',
    });
    await expect(revokeRateLimitKey(context, 'nobody')).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' });
  });

  it('ends a key at its expiry, without asking', async () => {
    const { find, context, world } = await setUp();
    const { key, record } = await createRateLimitKey(context, { ...plan, expiresAt: world.at + 1 });
    expect(await find(key)).toEqual(record);
    world.at++;
    expect(await find(key)).toBeNull();
  });

  it.each(['down', 'hangs'] as const)(
    'while the view is %s, keeps a known key for 15 minutes and calls no other unknown',
    async (mode) => {
      const { find, made, world } = await setUp();
      await find(made.key);
      world.mode = mode;
      world.now = 15 * 60_000;
      expect(await find(made.key)).toEqual(made.record);
      await expect(find(guess())).rejects.toThrow(KeyStoreFault);
      expect(await find('hello')).toBeNull();
      world.now++;
      await expect(find(made.key)).rejects.toThrow(KeyStoreFault);
    },
  );

  it('calls no key unknown while the view is not complete, from its start on', async () => {
    const { find, made, view } = await setUp();
    view.restart();
    await expect(find(made.key)).rejects.toThrow(KeyStoreFault);
    await expect(find(guess())).rejects.toThrow(KeyStoreFault);
  });
});
