import { describe, expect, it } from 'vitest';
import { createKeyText, createRateLimitKeyText, isRateLimitKeyText } from '../keys/key-text.ts';
import { createMemoryStore } from '../test/memory-records.ts';
import {
  createRateLimitKey,
  openRateLimitKeyFinder,
  RATE_LIMIT_KEYS,
  refreshRateLimitKey,
  revokeRateLimitKey,
} from './rate-limit-key.ts';

const prefix = 'svcapik';
const plan = { partner: 'Acme', calls: 5, windowS: 60, expiresAt: null };
const guess = () => createRateLimitKeyText(prefix);

async function setUp() {
  const { view, log, store } = createMemoryStore(RATE_LIMIT_KEYS);
  const world = { now: 0, at: 1_000_000 };
  const { find } = openRateLimitKeyFinder({
    view,
    prefix,
    now: () => world.now,
    wallClockMs: () => world.at,
    readEveryMs: 0,
  });
  const context = { store, prefix };
  return { world, log, context, find, made: await createRateLimitKey(context, plan) };
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
  it('finds a key with its plan, and none for a text of the wrong form or an invented one', async () => {
    const { find, made } = await setUp();
    expect([await find('hello'), await find(guess())]).toEqual([null, null]);
    expect(await find(made.key)).toEqual(made.record);
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
    await expect(revokeRateLimitKey(context, 'unknown')).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' });
  });

  it('ends a key at its expiry', async () => {
    const { find, context, world } = await setUp();
    const { key, record } = await createRateLimitKey(context, { ...plan, expiresAt: world.at + 1 });
    expect(await find(key)).toEqual(record);
    world.at++;
    expect(await find(key)).toBeNull();
  });
});
