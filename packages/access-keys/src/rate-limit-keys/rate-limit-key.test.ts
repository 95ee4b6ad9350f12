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

const CONFLICT = { code: 'CONFLICT_ERROR' };
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
  return { world, log, context, find, created: await createRateLimitKey(context, plan) };
}

describe('a rate limit key', () => {
  it('has the format rl_, prefix, 30 random characters and checksum, and differs from an environment key', () => {
    const text = guess();
    expect(text).toMatch(/^rl_svcapik-[0-9A-Za-z]{36}$/);
    expect(isRateLimitKeyText(prefix, text)).toBe(true);
    const last = text.endsWith('a') ? 'b' : 'a';
    const secret = createKeyText(prefix, { kind: 'secret', environment: 'production' });
    for (const wrong of ['', 'hello', text.slice(0, -1) + last, text.replace('rl_', 'sk_'), secret])
      expect(isRateLimitKeyText(prefix, wrong)).toBe(false);
  });

  it('is known only to its owner, because the log contains only the hash', async () => {
    const { log, created } = await setUp();
    expect(JSON.stringify(log.appended)).not.toContain(created.key.slice(-36));
    expect(created.key.slice(-4)).toBe(created.record.last4);
  });
});

describe('the rate limit key finder', () => {
  it('finds a key with its plan, and returns null for malformed and unknown keys', async () => {
    const { find, created } = await setUp();
    expect([await find('hello'), await find(guess())]).toEqual([null, null]);
    expect(await find(created.key)).toEqual(created.record);
  });

  it('rejects a replaced or revoked key within 500 ms, and accepts the new key under the same id', async () => {
    const { find, context, created, world } = await setUp();
    await find(created.key);
    const next = await refreshRateLimitKey(context, { keyId: created.record.keyId, calls: 9 });
    expect(next.record).toMatchObject({ keyId: created.record.keyId, calls: 9, windowS: 60, revision: 2 });
    world.now = 501;
    expect(await find(created.key)).toBeNull();
    expect(await find(next.key)).toEqual(next.record);
    await revokeRateLimitKey(context, created.record.keyId);
    world.now = 1002;
    expect(await find(next.key)).toBeNull();
    await expect(refreshRateLimitKey(context, { keyId: created.record.keyId })).rejects.toMatchObject(CONFLICT);
    await expect(revokeRateLimitKey(context, 'unknown')).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' });
  });

  it('rejects an expired key', async () => {
    const { find, context, world } = await setUp();
    const { key, record } = await createRateLimitKey(context, { ...plan, expiresAt: world.at + 1 });
    expect(await find(key)).toEqual(record);
    world.at++;
    expect(await find(key)).toBeNull();
  });
});
