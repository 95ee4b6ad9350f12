import { hang } from '@playline/testkit/hang';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { KeyStore, KeyView } from './key-store.ts';
import { createKeyText } from './key-text.ts';
import { createLiveKeys } from './live-keys.ts';
import { createMemoryKeyStore } from './memory/index.ts';
import { createKey, type NewKey, refreshKey } from './operations.ts';
import { createKeyVerifier, KeyStoreFault } from './verifier.ts';

const prefix = 'svcapik';
const wanted: NewKey = { projectId: 'p', environmentId: 'e-test', environment: 'production', kind: 'publishable' };

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

/** A store that counts look-ups and can be cut off or made to hang. */
async function setUp() {
  const memory = createMemoryKeyStore();
  const created = await createKey({ store: memory, prefix }, wanted);
  const world = { now: 1_000_000, lookUps: 0, mode: 'up' as 'up' | 'down' | 'hangs', listed: true };
  const find: KeyStore['find'] = (hash) => {
    world.lookUps++;
    if (world.mode === 'down') return Promise.reject(new Error('connection refused'));
    if (world.mode === 'hangs') return hang();
    return memory.find(hash);
  };
  const options = { store: { find }, prefix, kind: 'publishable' as const, now: () => world.now };
  return { memory, ...created, world, verify: createKeyVerifier(options) };
}

describe('createKeyVerifier', () => {
  it('finds a live key and then answers from memory without a promise', async () => {
    const { verify, key, record, world } = await setUp();
    expect(await verify(key)).toEqual(record);
    expect(verify(key)).toEqual(record);
    expect(world.lookUps).toBe(1);
  });

  it('refuses a malformed key, a wrong checksum and a key of the other kind without a look-up', async () => {
    const { verify, key, world } = await setUp();
    const secret = createKeyText(prefix, { kind: 'secret', environment: 'production' });
    const flipped = key.slice(0, -1) + (key.endsWith('a') ? 'b' : 'a');
    expect([verify(''), verify('nonsense'), verify(flipped), verify(secret)]).toEqual([null, null, null, null]);
    expect(world.lookUps).toBe(0);
  });

  it('looks an answer up again once it is older than 500 ms, so that a refreshed key ends', async () => {
    const { verify, key, memory, world } = await setUp();
    await verify(key);
    const successor = await refreshKey({ store: memory, prefix }, wanted);
    world.now += 501;
    expect(await verify(key)).toBeNull();
    expect(await verify(successor.key)).toEqual(successor.record);
  });

  it('looks up ahead of that age without making the request wait', async () => {
    const { verify, key, record, world } = await setUp();
    await verify(key);
    world.now += 300;
    expect(verify(key)).toEqual(record);
    expect(world.lookUps).toBe(2);
  });

  it('makes one look-up for many concurrent requests with the same key', async () => {
    const { verify, key, record, world } = await setUp();
    const answers = await Promise.all(Array.from({ length: 200 }, () => verify(key)));
    expect(answers.every((answer) => answer?.keyId === record.keyId)).toBe(true);
    expect(world.lookUps).toBe(1);
  });

  it.each(['down', 'hangs'] as const)('keeps a cached key good for 15 minutes while the store is %s', async (mode) => {
    const { verify, key, record, world } = await setUp();
    await verify(key);
    const seenAt = world.now;
    world.mode = mode;
    world.now = seenAt + 15 * 60_000;
    expect(await verify(key)).toEqual(record);
    world.now = seenAt + 15 * 60_000 + 1;
    await expect((async () => verify(key))()).rejects.toThrow(KeyStoreFault);
  });

  it.each(['down', 'hangs'] as const)(
    'calls an uncached key a fault, never unknown, while the store is %s',
    async (mode) => {
      const { verify, key, world } = await setUp();
      world.mode = mode;
      await expect((async () => verify(key))()).rejects.toThrow(KeyStoreFault);
    },
  );

  it('does not let every request wait for a store that hangs', async () => {
    const { verify, key, record, world } = await setUp();
    await verify(key);
    world.mode = 'hangs';
    world.now += 1000;
    expect(await verify(key)).toEqual(record);
    expect(verify(key)).toEqual(record);
    expect(world.lookUps).toBe(2);
  });

  it('ends a key again as soon as the store is back', async () => {
    const { verify, key, memory, world } = await setUp();
    await verify(key);
    world.mode = 'down';
    world.now += 60_000;
    await verify(key);
    await refreshKey({ store: memory, prefix }, wanted);
    world.mode = 'up';
    world.now += 501;
    expect(await verify(key)).toBeNull();
  });

  it('keeps valid keys in the cache during a flood of invented ones', async () => {
    const { key, record, memory, world } = await setUp();
    let lookUps = 0;
    const find: KeyStore['find'] = (hash) => {
      lookUps++;
      return memory.find(hash);
    };
    const options = { store: { find }, prefix, kind: 'publishable' as const, now: () => world.now, entriesMax: 10 };
    const verify = createKeyVerifier(options);
    await verify(key);
    for (let i = 0; i < 50; i++) await verify(guess());
    expect(verify(key)).toEqual(record);
    expect(lookUps).toBe(51);
  });
});

const guess = () => createKeyText(prefix, { kind: 'publishable', environment: 'production' });

/** A verifier with a list of live keys, and a store that counts look-ups. */
async function setUpListed() {
  const { memory, world, ...created } = await setUp();
  let questions = 0;
  const changesSince: KeyView['changesSince'] = async (place) => {
    questions++;
    if (world.mode === 'down' || !world.listed) throw new Error('connection refused');
    if (world.mode === 'hangs') return hang();
    return memory.changesSince(place);
  };
  const find: KeyStore['find'] = (hash) => {
    world.lookUps++;
    return world.mode === 'up' ? memory.find(hash) : Promise.reject(new Error('connection refused'));
  };
  const live = createLiveKeys({ ...memory, changesSince });
  const store = { find, live };
  const verify = createKeyVerifier({ store, prefix, kind: 'publishable', now: () => world.now });
  await live.refresh();
  return { ...created, memory, world, live, verify, questions: () => questions };
}

describe('a verifier with a list of live keys', () => {
  it('asks the store once for a thousand guesses at once, and looks up one of them to be sure of the list', async () => {
    const { verify, world, questions } = await setUpListed();
    const before = questions();
    const verdicts = await Promise.all(Array.from({ length: 1000 }, () => verify(guess())));
    expect(verdicts.every((verdict) => verdict === null)).toBe(true);
    expect(questions() - before).toBe(1);
    expect(world.lookUps).toBe(1);
  });

  it('takes a key that was made this moment, whatever was said of it before and however many guess', async () => {
    const { verify, memory } = await setUpListed();
    const fresh = { ...wanted, environmentId: 'e-fresh' };
    const flood = Promise.all(Array.from({ length: 100 }, () => verify(guess())));
    const { key, record } = await createKey({ store: memory, prefix }, fresh);
    expect(await verify(key)).toEqual(record);
    await flood;
    const successor = await refreshKey({ store: memory, prefix }, fresh);
    expect(await verify(successor.key)).toEqual(successor.record);
  });

  it('does not look up an ended key once the list knows of its end', async () => {
    const { verify, key, memory, live, world } = await setUpListed();
    await refreshKey({ store: memory, prefix }, wanted);
    await live.refresh();
    expect([await verify(key), await verify(key), await verify(key)]).toEqual([null, null, null]);
    expect(world.lookUps).toBe(1);
  });

  it.each(['down', 'hangs'] as const)(
    'calls every unknown key a fault, with one look-up for all, while the store is %s',
    async (mode) => {
      const { verify, world } = await setUpListed();
      world.mode = mode;
      const verdicts = await Promise.allSettled(Array.from({ length: 100 }, async () => verify(guess())));
      for (const verdict of verdicts) expect(verdict).toMatchObject({ reason: expect.any(KeyStoreFault) });
      expect(world.lookUps).toBe(1);
    },
  );

  it('ends a revoked key in time, and takes a new one, also while the list cannot be had and others guess', async () => {
    const { verify, memory, world, key } = await setUpListed();
    await verify(key);
    world.listed = false;
    const { key: successor } = await refreshKey({ store: memory, prefix }, wanted);
    for (let second = 0; second < 5; second++) {
      for (let tick = 0; tick < 10; tick++) {
        world.now += 100;
        await Promise.allSettled([verify(guess())]);
      }
      world.now += 50;
      await Promise.allSettled([verify(key)]);
    }
    expect(await Promise.resolve(verify(key)).catch(() => null)).toBeNull();
    world.now += 50;
    expect(await verify(successor)).not.toBeNull();
  });

  it('finds a key that the list lacks by a spare look-up, and lists it', async () => {
    const { verify, memory, world } = await setUpListed();
    const { key, record } = await createKey({ store: createMemoryKeyStore(), prefix }, wanted);
    const { find } = memory;
    memory.find = async (hash) => (hash === record.hash ? record : find(hash));
    await verify(guess());
    expect(await verify(key)).toBeNull();
    world.now += 50;
    expect(await verify(key)).toEqual(record);
  });
});
