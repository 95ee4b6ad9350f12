import { randomUUID } from 'node:crypto';
import { testStores } from '@playline/testkit';
import { Redis } from 'ioredis';
import { afterAll, describe, expect, it } from 'vitest';
import type { KeyRecord, KeyView } from './key-store.ts';
import { hashKey } from './key-text.ts';
import { createMemoryKeyStore } from './memory/index.ts';
import { createKey, type NewKey, refreshKey, revokeKey, setKeyOrigins } from './operations.ts';
import { IncompleteViewFault } from './records/view-faults.ts';
import { openRedisKeyStore, type RedisKeyStore } from './redis/index.ts';

const prefix = 'svcapik';
const namespace = `test-${randomUUID()}:`;
const opened: RedisKeyStore[] = [];

async function openRedis(): Promise<KeyView> {
  const store = await openRedisKeyStore({ url: testStores().redis, namespace });
  opened.push(store);
  return store;
}

afterAll(async () => {
  for (const store of opened) await store.close();
  const redis = new Redis(testStores().redis);
  const keys = await redis.keys(`${namespace}*`);
  if (keys.length > 0) await redis.del(keys);
  redis.disconnect();
});

function newKey(): NewKey {
  const id = randomUUID();
  return { projectId: `p-${id}`, environmentId: `test-${id}`, environment: 'development', kind: 'publishable' };
}

describe.each([
  ['memory', async () => createMemoryKeyStore()],
  ['redis', openRedis],
])('a key store in %s', (_name, open) => {
  it('finds a created key by its hash and never holds the text of a secret one', async () => {
    const store = await open();
    const { record, key } = await createKey({ store, prefix }, { ...newKey(), kind: 'secret' });
    expect(await store.find(hashKey(key))).toEqual(record);
    expect(JSON.stringify(record)).not.toContain(key.slice(key.indexOf('-') + 1));
    expect(key.slice(-4)).toBe(record.last4);
  });

  it('keeps the text of a publishable key, its name over a refresh, and who asked for each', async () => {
    const store = await open();
    const wanted = { ...newKey(), name: 'web client' };
    const [made, refreshed] = ['r-1', 'r-2'].map((requestId) => ({ changedBy: 'ada', requestId }));
    const first = await createKey({ store, prefix, author: made! }, wanted);
    expect(first.record).toMatchObject({ text: first.key, name: 'web client', ...made });
    const second = await refreshKey({ store, prefix, author: refreshed! }, { ...wanted, name: undefined });
    expect(second.record).toMatchObject({ text: second.key, name: 'web client', ...refreshed });
    expect(await store.find(first.record.hash)).toMatchObject(refreshed!);
  });

  it('says whose pages may use a key, which goes on otherwise as it was, and over a refresh', async () => {
    const store = await open();
    const wanted = newKey();
    const { record } = await createKey({ store, prefix }, wanted);
    expect(record.origins).toEqual([]);
    const { environmentId } = wanted;
    const author = { changedBy: 'ada', requestId: 'r-2' };
    const changed = await setKeyOrigins({ store, author }, { environmentId, origins: ['HTTPS://Game.Example:443/'] });
    expect(changed).toEqual({
      ...{ ...record, ...author, origins: ['https://game.example'], changedAt: expect.any(Number) },
    });
    expect([await store.find(record.hash), await store.list(wanted.projectId)]).toEqual([changed, [changed]]);
    const next = await refreshKey({ store, prefix }, wanted);
    expect(next.record).toMatchObject({ origins: ['https://game.example'], changedAt: 0 });
    expect(await store.amend({ ...changed, origins: [] })).toBe(false);
    expect((await store.find(record.hash))?.revokedAt).not.toBeNull();
    await revokeKey({ store }, wanted);
    await expect(setKeyOrigins({ store }, { environmentId, origins: [] })).rejects.toMatchObject({
      code: 'RESOURCE_NOT_FOUND',
    });
  });

  it('gives an environment one live key of a kind', async () => {
    const store = await open();
    const wanted = newKey();
    await createKey({ store, prefix }, wanted);
    await createKey({ store, prefix }, { ...wanted, kind: 'secret' });
    await expect(createKey({ store, prefix }, wanted)).rejects.toMatchObject({ code: 'CONFLICT_ERROR' });
    expect(await store.list(wanted.projectId)).toHaveLength(2);
  });

  it('lets one of many creations at the same moment win', async () => {
    const store = await open();
    const wanted = newKey();
    const results = await Promise.allSettled(Array.from({ length: 10 }, () => createKey({ store, prefix }, wanted)));
    expect(results.filter((result) => result.status === 'fulfilled')).toHaveLength(1);
  });

  it('ends the old key and starts the new one in one step', async () => {
    const store = await open();
    const wanted = newKey();
    const first = await createKey({ store, prefix }, wanted);
    const second = await refreshKey({ store, prefix }, wanted);
    expect((await store.find(first.record.hash))?.revokedAt).not.toBeNull();
    expect(await store.findLive(wanted.environmentId, wanted.kind)).toEqual(second.record);
    expect((await store.list(wanted.projectId)).map((record) => record.keyId)).toEqual([
      first.record.keyId,
      second.record.keyId,
    ]);
  });

  it('ends a key without a successor, after which a new one can be created', async () => {
    const store = await open();
    const wanted = newKey();
    await createKey({ store, prefix }, wanted);
    await revokeKey({ store }, wanted);
    expect(await store.findLive(wanted.environmentId, wanted.kind)).toBeNull();
    await expect(refreshKey({ store, prefix }, wanted)).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' });
    await createKey({ store, prefix }, wanted);
  });
});

describe.each([
  ['memory', async () => createMemoryKeyStore()],
  ['redis', openRedis],
])('a view of the keys in %s', (_name, open) => {
  async function setUp() {
    const store = await open();
    const wanted = newKey();
    const { record } = await createKey({ store, prefix }, wanted);
    return { store, wanted, record, ended: { ...record, revokedAt: 1 } };
  }
  const another = (record: KeyRecord): KeyRecord => {
    const id = randomUUID();
    return { ...record, keyId: id, hash: hashKey(id), createdAt: record.createdAt + 1 };
  };

  it('ends what the log has ended, and gives its place to the live one', async () => {
    const { store, wanted, record, ended } = await setUp();
    const successor = another(record);
    await store.restore([successor, ended], [], (await store.standing()).run);
    expect(await store.find(record.hash)).toEqual(ended);
    expect(await store.findLive(wanted.environmentId, wanted.kind)).toEqual(successor);
    expect(await store.list(wanted.projectId)).toEqual([ended, successor]);
  });

  it('never brings an ended key back to life', async () => {
    const { store, wanted, record } = await setUp();
    const ended = await revokeKey({ store }, wanted);
    await store.restore([record], [], (await store.standing()).run);
    expect(await store.find(record.hash)).toEqual(ended);
    expect(await store.findLive(wanted.environmentId, wanted.kind)).toBeNull();
  });

  it('takes strangers out everywhere, and names all that it holds', async () => {
    const { store, wanted, record } = await setUp();
    const known = another(record);
    expect(await store.hashes()).toContain(record.hash);
    await store.restore([known], [record.hash], (await store.standing()).run);
    expect(await store.find(record.hash)).toBeNull();
    expect(await store.findLive(wanted.environmentId, wanted.kind)).toEqual(known);
    expect(await store.list(wanted.projectId)).toEqual([known]);
    expect(await store.hashes()).not.toContain(record.hash);
  });

  it('gives one turn at a time, also after one that failed', async () => {
    const store = await open();
    let inside = 0;
    let most = 0;
    const work = async () => {
      most = Math.max(most, ++inside);
      await new Promise((resolve) => setImmediate(resolve));
      inside--;
    };
    const failed = store.exclusive(() => Promise.reject(new Error('no')));
    await Promise.all([
      expect(failed).rejects.toThrow('no'),
      ...Array.from({ length: 8 }, () => store.exclusive(work)),
    ]);
    expect(most).toBe(1);
  });
});

describe('openRedisKeyStore', () => {
  it('calls no key unknown before it has keys, and after it has lost them', async () => {
    const own = `${namespace}lost:`;
    const store = await openRedisKeyStore({ url: testStores().redis, namespace: own });
    opened.push(store);
    expect(await store.isComplete()).toBe(false);
    await expect(store.find(hashKey('any'))).rejects.toThrow('lost the keys');
    const { record } = await createKey({ store, prefix }, newKey());
    expect(await store.find(hashKey('any'))).toBeNull();
    const redis = new Redis(testStores().redis);
    await redis.del(await redis.keys(`${own}*`));
    redis.disconnect();
    await expect(store.find(record.hash)).rejects.toThrow('lost the keys');
    await store.restore([record], [], (await store.standing()).run);
    expect(await store.find(record.hash)).toEqual(record);
  });

  it('calls no key live or unknown in a new run of Redis until the log has been brought in, and an ended one ended', async () => {
    const own = `${namespace}restarted:`;
    const store = await openRedisKeyStore({ url: testStores().redis, namespace: own });
    opened.push(store);
    const context = { store, prefix };
    const [live, ended] = [await createKey(context, newKey()), await createKey(context, newKey())];
    await revokeKey(context, ended.record);
    const { run } = await store.standing();
    const redis = new Redis(testStores().redis);
    await redis.set(`${own}k:complete`, 'the run before');
    expect(await store.standing()).toEqual({ run, completeIn: 'the run before' });
    expect(await store.isComplete()).toBe(false);
    for (const hash of [live.record.hash, hashKey('any')])
      await expect(store.find(hash)).rejects.toThrow(IncompleteViewFault);
    expect(await store.find(ended.record.hash)).toMatchObject({ revokedAt: expect.any(Number) });
    await expect(store.restore([], [], 'the run before')).rejects.toThrow('started anew');
    await expect(store.find(live.record.hash)).rejects.toThrow(IncompleteViewFault);
    await store.restore([], [], run);
    expect(await store.find(live.record.hash)).toEqual(live.record);
    redis.disconnect();
  });

  it('fails a look-up at once while Redis is away instead of queueing it', async () => {
    const store = await openRedisKeyStore({ url: 'redis://127.0.0.1:1' });
    opened.push(store);
    await expect(store.find('00')).rejects.toThrow();
    expect(await store.ready()).toBe(false);
  });
});
