import { hang } from '@playline/testkit/hang';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createMemoryStore } from '../test/index.ts';
import { ACCESS_KEYS, createKey, type NewKey, refreshKey, setKeyEnd } from './access-key.ts';
import { createKeyVerifier, KeyStoreFault, openKeys } from './key-lookup.ts';
import { createKeyText } from './key-text.ts';

const prefix = 'svcapik';
const wanted: NewKey = { projectId: 'p', environmentId: 'e-test', environment: 'production', kind: 'publishable' };
const guess = () => createKeyText(prefix, { kind: 'publishable', environment: 'production' });

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'], shouldAdvanceTime: true }));
afterEach(() => void vi.useRealTimers());

/** Creates a key, and a verifier whose store counts reads and can fail or hang. */
async function setUp() {
  const { view, store } = createMemoryStore(ACCESS_KEYS);
  const context = { store, prefix };
  const created = await createKey(context, wanted);
  const world = { now: 1_000_000, wall: Date.now(), reads: 0, mode: 'up' as 'up' | 'down' | 'hung' };
  const readSince: typeof view.readSince = (version) => {
    world.reads++;
    if (world.mode === 'down') return Promise.reject(new Error('connection refused'));
    return world.mode === 'hung' ? hang() : view.readSince(version);
  };
  const open = () => {
    const clocks = { now: () => world.now, wallClockMs: () => world.wall };
    const keys = openKeys({ view: { kind: ACCESS_KEYS, readSince }, ...clocks, readEveryMs: 0 });
    return createKeyVerifier({ keys, prefix, kind: 'publishable' });
  };
  return { view, context, ...created, world, open, verify: open() };
}

describe('a key verifier', () => {
  it('finds a live key, and returns later results synchronously', async () => {
    const { verify, key, record, world } = await setUp();
    expect(await verify(key)).toEqual(record);
    expect(verify(key)).toEqual(record);
    expect(world.reads).toBe(1);
  });

  it('rejects a malformed key, a wrong checksum and a secret key without reading the store', async () => {
    const { verify, key, world } = await setUp();
    const secret = createKeyText(prefix, { kind: 'secret', environment: 'production' });
    const flipped = key.slice(0, -1) + (key.endsWith('a') ? 'b' : 'a');
    expect([verify(''), verify('nonsense'), verify(flipped), verify(secret)]).toEqual([null, null, null, null]);
    expect(world.reads).toBe(0);
  });

  it('refreshes its copy after 500 ms, so that a replaced key is rejected', async () => {
    const { verify, key, context, world } = await setUp();
    await verify(key);
    const successor = await refreshKey(context, wanted);
    world.now += 501;
    expect(await verify(key)).toBeNull();
    expect(await verify(successor.key)).toEqual(successor.record);
  });

  it('refreshes its copy in the background before the copy expires', async () => {
    const { verify, key, record, world } = await setUp();
    await verify(key);
    world.now += 300;
    for (let i = 0; i < 10; i++) expect(verify(key)).toEqual(record);
    await vi.waitFor(() => expect(world.reads).toBe(2));
    world.now += 300;
    expect(verify(key)).toEqual(record);
  });

  it('accepts a new key immediately, and shares one read across a thousand unknown keys', async () => {
    const { verify, context, world } = await setUp();
    await verify(guess());
    const fresh = await createKey(context, { ...wanted, environmentId: 'e-fresh' });
    const before = world.reads;
    const guesses = Promise.all(Array.from({ length: 1000 }, () => verify(guess())));
    expect(await verify(fresh.key)).toEqual(fresh.record);
    expect(new Set(await guesses)).toEqual(new Set([null]));
    expect(world.reads - before).toBeLessThanOrEqual(2);
  });

  it.each(['down', 'hung'] as const)(
    'accepts known keys for 15 minutes while the store is %s, and fails for unknown keys',
    async (mode) => {
      const { verify, key, record, context, world } = await setUp();
      await createKey(context, { ...wanted, environmentId: 'e-ended' });
      await verify(key);
      world.mode = mode;
      world.now += 15 * 60_000;
      expect(await verify(key)).toEqual(record);
      // Only the first request waits for the hung store.
      expect(verify(key)).toEqual(record);
      await expect(verify(guess())).rejects.toThrow(KeyStoreFault);
      world.now += 1;
      await expect(verify(key)).rejects.toThrow(KeyStoreFault);
    },
  );

  it('rejects an ended key while the store is down', async () => {
    const { verify, key, context, world } = await setUp();
    await refreshKey(context, wanted);
    expect(await verify(key)).toBeNull();
    world.mode = 'down';
    world.now += 60_000;
    expect(await verify(key)).toBeNull();
  });

  it('rejects a key that ended during an outage once the store recovers', async () => {
    const { verify, key, context, world } = await setUp();
    await verify(key);
    world.mode = 'down';
    world.now += 60_000;
    await verify(key);
    await refreshKey(context, wanted);
    world.mode = 'up';
    world.now += 501;
    await vi.waitFor(async () => expect(await verify(key)).toBeNull());
  });

  it('rejects a key from its end on without a change in the store, unless the end was extended before', async () => {
    const { verify, key, context, world } = await setUp();
    const endsAt = world.wall + 10_000;
    await setKeyEnd(context, { ...wanted, endsAt });
    world.now += 501;
    await verify(key);
    const pass = (ms: number) => {
      world.wall += ms;
      world.now += ms;
    };
    pass(9_999);
    await vi.waitFor(() => expect(verify(key)).toMatchObject({ endsAt }));
    vi.setSystemTime(world.wall);
    await setKeyEnd(context, { ...wanted, endsAt: endsAt + 5_000 });
    pass(1);
    expect(await verify(key)).toMatchObject({ endsAt: endsAt + 5_000 });
    pass(4_999);
    await vi.waitFor(() => expect(verify(key)).not.toBeNull());
    pass(1);
    expect(await verify(key)).toBeNull();
    expect(verify(key)).toBeNull();
  });

  it('neither accepts nor rejects a key that reaches its end during an outage, because its end may have been extended', async () => {
    const { verify, key, context, world } = await setUp();
    await setKeyEnd(context, { ...wanted, endsAt: world.wall + 60_000 });
    world.now += 501;
    await verify(key);
    world.mode = 'down';
    world.now += 60_000;
    expect(await verify(key)).not.toBeNull();
    world.wall += 60_000;
    await expect(verify(key)).rejects.toThrow(KeyStoreFault);
    world.mode = 'up';
    expect(await verify(key)).toBeNull();
  });

  it('applies the result of a read that exceeded its time limit', async () => {
    const { view, key, record } = await setUp();
    const slow = Promise.withResolvers<void>();
    const readSince: typeof view.readSince = (version) => slow.promise.then(() => view.readSince(version));
    const keys = openKeys({ view: { kind: ACCESS_KEYS, readSince }, readEveryMs: 0 });
    const verify = createKeyVerifier({ keys, prefix, kind: 'publishable' });
    await expect(verify(key)).rejects.toThrow(KeyStoreFault);
    slow.resolve();
    await vi.waitFor(async () => expect(await verify(key)).toEqual(record));
  });

  it('neither accepts nor rejects a key while the view is incomplete', async () => {
    const { key, view, open } = await setUp();
    view.restart();
    const verify = open();
    for (const text of [key, guess()]) await expect(verify(text)).rejects.toThrow(KeyStoreFault);
  });

  it('fails instead of rejecting a key if there are no keys, because the store address may be wrong', async () => {
    const { view, store } = createMemoryStore(ACCESS_KEYS);
    expect(await store.readAll()).toEqual([]);
    const keys = openKeys({ view, readEveryMs: 0 });
    const verify = createKeyVerifier({ keys, prefix, kind: 'publishable' });
    await expect(verify(guess())).rejects.toThrow(KeyStoreFault);
    expect(await verify('nonsense')).toBeNull();
  });
});
