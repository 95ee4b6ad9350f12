import { randomUUID } from 'node:crypto';
import { testStores } from '@playline/testkit';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, describe, expect, it } from 'vitest';
import type { KeyView } from './key-store.ts';
import { hashKey } from './key-text.ts';
import { createLiveKeys } from './live-keys.ts';
import { createMemoryKeyStore } from './memory/index.ts';
import { createKey, type NewKey, revokeKey } from './operations.ts';
import { IncompleteViewFault } from './records/view-faults.ts';
import { openRedisKeyStore, type RedisKeyStore } from './redis/index.ts';

const prefix = 'svcapik';
const namespace = `test-${randomUUID()}:`;
const redis = new Redis(testStores().redis);
const opened: RedisKeyStore[] = [];

async function openRedis(own = `${namespace}${randomUUID()}:`): Promise<KeyView> {
  const store = await openRedisKeyStore({ url: testStores().redis, namespace: own });
  opened.push(store);
  return store;
}

afterAll(async () => {
  for (const store of opened) await store.close();
  const keys = await redis.keys(`${namespace}*`);
  if (keys.length > 0) await redis.del(keys);
  redis.disconnect();
});

const ENVIRONMENTS = 3;
const wantedIn = (environment: number): NewKey => ({
  projectId: 'p',
  environmentId: `e-${environment}`,
  environment: 'production',
  kind: 'publishable',
});

/** One of the things that change which keys live; `environment` counts from 0. */
const action = fc.record({
  name: fc.constantFrom('create', 'refresh', 'revoke', 'rebuild', 'look'),
  environment: fc.nat(ENVIRONMENTS - 1),
});

describe.each([
  ['memory', 100, async () => createMemoryKeyStore()],
  ['redis', 20, () => openRedis()],
])('a list of live keys in %s', (_name, numRuns, open) => {
  async function act(store: KeyView, { name, environment }: { name: string; environment: number }) {
    const wanted = wantedIn(environment);
    const live = await store.findLive(wanted.environmentId, wanted.kind).catch(() => null);
    const makeKey = async () => (await createKey({ store: createMemoryKeyStore(), prefix }, wanted)).record;
    if (name === 'create' && live === null) await store.replace(null, await makeKey());
    if (name === 'refresh' && live !== null) await store.replace({ ...live, revokedAt: 1 }, await makeKey());
    if (name === 'revoke' && live !== null) await store.replace({ ...live, revokedAt: 1 }, null);
    // The log knows of one key more and of one less: what a rebuild is for.
    if (name === 'rebuild')
      await store.restore([await makeKey()], live === null ? [] : [live.hash], (await store.standing()).run);
  }

  it('has exactly the keys that live after each refresh, whatever happened in between and during it', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 30 }), async (actions) => {
        const store = await open();
        await store.restore([], [], (await store.standing()).run);
        const list = createLiveKeys(store);
        for (const each of actions) {
          if (each.name === 'look') void list.refresh();
          else await act(store, each);
        }
        await list.refresh();
        for (const hash of await store.hashes()) {
          const record = await store.find(hash);
          expect(list.has(hash)).toBe(record?.revokedAt === null);
        }
        expect(list.has(hashKey('nobody made it'))).toBe(false);
      }),
      { numRuns },
    );
  });
});

describe('a list of live keys in Redis', () => {
  it('is read whole by who has missed more than is kept of its changes', async () => {
    const store = await openRedis();
    const { record } = await createKey({ store, prefix }, wantedIn(0));
    const list = createLiveKeys(store);
    await list.refresh();
    let live = record;
    for (let times = 0; times < 600; times++) {
      const successor = { ...live, hash: hashKey(`key ${times}`) };
      await store.replace({ ...live, revokedAt: 1 }, successor);
      live = successor;
    }
    await list.refresh();
    expect([list.has(record.hash), list.has(live.hash)]).toEqual([false, true]);
  });

  it('is not complete where a release made the keys that had no list, until the log has been brought in', async () => {
    const own = `${namespace}${randomUUID()}:`;
    const store = await openRedis(own);
    const { record } = await createKey({ store, prefix }, wantedIn(0));
    await redis.del(`${own}k:list`, `${own}k:live`, `${own}k:version`, `${own}k:changes`);
    const list = createLiveKeys(store);
    expect(await store.isComplete()).toBe(false);
    await expect(list.refresh()).rejects.toThrow(IncompleteViewFault);
    expect(await store.find(record.hash)).toEqual(record);
    await store.restore([record], [], (await store.standing()).run);
    await list.refresh();
    expect(list.has(record.hash)).toBe(true);
  });

  it('is not complete in a new run of Redis, and another one afterwards for who has places of the former', async () => {
    const own = `${namespace}${randomUUID()}:`;
    const store = await openRedis(own);
    const { record } = await createKey({ store, prefix }, wantedIn(0));
    const list = createLiveKeys(store);
    await list.refresh();
    await redis.set(`${own}k:complete`, 'the run before');
    await redis.set(`${own}k:list`, 'the run before:its list');
    // A crash has cost the list its end, so that its version comes by once more for another change.
    await redis.set(`${own}k:version`, 0);
    await expect(list.refresh()).rejects.toThrow(IncompleteViewFault);
    await store.restore([{ ...record, revokedAt: 1 }], [], (await store.standing()).run);
    await revokeKey({ store }, (await createKey({ store, prefix }, wantedIn(1))).record);
    await list.refresh();
    expect(list.has(record.hash)).toBe(false);
  });
});
