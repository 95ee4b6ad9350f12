import { describe, expect, it } from 'vitest';
import type { KeyRecord, KeyStore } from './key-store.ts';
import { createKeyText } from './key-text.ts';
import { createMemoryKeyStore } from './memory/index.ts';
import { createKey, type NewKey, refreshKey } from './operations.ts';
import { createKeyVerifier, KeyStoreFault } from './verifier.ts';

const prefix = 'svcapik';
const wanted: NewKey = { projectId: 'p', environmentId: 'e-test', environment: 'production', kind: 'publishable' };

/** A store that counts look-ups and can be cut off or made to hang. */
async function setUp() {
  const memory = createMemoryKeyStore();
  const created = await createKey({ store: memory, prefix }, wanted);
  const world = { now: 1_000_000, lookUps: 0, mode: 'up' as 'up' | 'down' | 'hangs' };
  const find: KeyStore['find'] = (hash) => {
    world.lookUps++;
    if (world.mode === 'down') return Promise.reject(new Error('connection refused'));
    if (world.mode === 'hangs') return new Promise<KeyRecord | null>(() => {});
    return memory.find(hash);
  };
  const options = { store: { find }, prefix, kind: 'publishable' as const, now: () => world.now, lookUpMaxMs: 20 };
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

  it('makes one look-up when many requests bring one key at once', async () => {
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

  it('remembers an unknown key for 500 ms only, so that a new key works at once', async () => {
    const { world } = await setUp();
    const stored = new Map<string, KeyRecord>();
    const find = async (hash: string) => {
      world.lookUps++;
      return stored.get(hash) ?? null;
    };
    const verify = createKeyVerifier({ store: { find }, prefix, kind: 'publishable', now: () => world.now });
    const { key, record } = await createKey({ store: createMemoryKeyStore(), prefix }, wanted);
    expect(await verify(key)).toBeNull();
    expect(verify(key)).toBeNull();
    expect(world.lookUps).toBe(1);
    stored.set(record.hash, record);
    world.now += 501;
    expect(await verify(key)).toEqual(record);
  });

  it('keeps good keys although invented ones flood in', async () => {
    const { key, record, memory, world } = await setUp();
    let lookUps = 0;
    const find: KeyStore['find'] = (hash) => {
      lookUps++;
      return memory.find(hash);
    };
    const options = { store: { find }, prefix, kind: 'publishable' as const, now: () => world.now, entriesMax: 10 };
    const verify = createKeyVerifier(options);
    await verify(key);
    for (let i = 0; i < 50; i++)
      await verify(createKeyText(prefix, { kind: 'publishable', environment: 'production' }));
    expect(verify(key)).toEqual(record);
    expect(lookUps).toBe(51);
  });
});
