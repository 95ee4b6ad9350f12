import { describe, expect, it } from 'vitest';
import { createRecordStore } from '../records/record-store.ts';
import { ViewFault } from '../records/record-view.ts';
import { rebuildRecords, syncFromLog } from '../records/sync-from-log.ts';
import { createMemoryRecords, createMemoryStore } from '../test/index.ts';
import {
  ACCESS_KEYS,
  type AccessKeyRecord,
  changeKey,
  createKey,
  ENDED_KEYS_KEPT,
  findLiveKey,
  findPublishableKey,
  KEY_END_MAX_MS,
  keysOf,
  keysOfProject,
  type NewKey,
  PUBLISHABLE_KEYS_MAX,
  refreshKey,
  revokeKey,
  setKeyEnd,
} from './access-key.ts';
import { hashKey } from './key-text.ts';

const NOT_FOUND = { code: 'RESOURCE_NOT_FOUND' };
const CONFLICT = { code: 'CONFLICT_ERROR' };
const prefix = 'svcapik';
const ada = { changedBy: 'ada', requestId: 'r-1' };
const wanted: NewKey = { projectId: 'p', environmentId: 'p-test', environment: 'production', kind: 'publishable' };
const secret: NewKey = { ...wanted, kind: 'secret' };

function setUp() {
  const world = createMemoryStore(ACCESS_KEYS, ada);
  const { view, log } = world;
  const crashed = { ...view, update: () => Promise.reject(new Error('crashed')) };
  return {
    ...world,
    context: { store: world.store, prefix },
    bob: { store: createRecordStore({ view, log }, { changedBy: 'bob', requestId: 'r-2' }), prefix },
    /** Simulates a process that crashes before it updates the view. */
    crashing: { store: createRecordStore({ view: crashed, log }, ada), prefix },
    keys: async () => keysOfProject(await world.store.readAll(), 'p'),
  };
}

describe('environment keys', () => {
  it('are stored as hashes, so neither the log nor the view contains a secret key', async () => {
    const { context, log, store } = setUp();
    const { record, key } = await createKey(context, secret);
    expect(record).toMatchObject({ hash: hashKey(key), last4: key.slice(-4), text: null, changedBy: 'ada' });
    expect(JSON.stringify([log.appended, await store.readAll()])).not.toContain(key.slice(key.indexOf('-') + 1));
  });

  it('contain the full text of a live publishable key, and keep their name when refreshed', async () => {
    const { context, bob, keys } = setUp();
    const first = await createKey(context, { ...wanted, name: 'web client' });
    expect(first.record).toMatchObject({ text: first.key, name: 'web client', revokedAt: null });
    const second = await refreshKey(bob, wanted);
    expect(second.record).toMatchObject({ text: second.key, name: 'web client', changedBy: 'bob' });
    expect(await keys()).toEqual([
      { ...first.record, text: null, changedBy: 'bob', revokedAt: expect.any(Number) },
      second.record,
    ]);
  });

  it('are limited to one live secret key and 20 live publishable keys, and records without a live key are used again', async () => {
    const { context, log, keys, store } = setUp();
    await createKey(context, secret);
    await expect(createKey(context, secret)).rejects.toMatchObject(CONFLICT);
    const created = [];
    for (let i = 0; i < PUBLISHABLE_KEYS_MAX; i++)
      created.push(await createKey(context, { ...wanted, name: `build ${i}` }));
    await expect(createKey(context, wanted)).rejects.toMatchObject(CONFLICT);
    expect(log.appended).toHaveLength(PUBLISHABLE_KEYS_MAX + 1);
    const { keyId } = created[7]!.record;
    expect(await revokeKey(context, { ...wanted, keyId })).toMatchObject({ keyId, name: 'build 7' });
    const next = await createKey(context, wanted);
    expect(await store.readAll()).toHaveLength(PUBLISHABLE_KEYS_MAX + 1);
    const live = (await keys()).filter(({ revokedAt }) => revokedAt === null);
    expect(live.map((key) => key.keyId)).toEqual(expect.arrayContaining([created[8]!.record.keyId, next.record.keyId]));
    expect(live).toHaveLength(PUBLISHABLE_KEYS_MAX + 1);
  });

  it('must be named to be changed if several are live, except for the only key without an end', async () => {
    const { context } = setUp();
    const [first, second] = [await createKey(context, wanted), await createKey(context, wanted)];
    for (const change of [refreshKey, revokeKey]) await expect(change(context, wanted)).rejects.toMatchObject(CONFLICT);
    const { keyId } = second.record;
    await setKeyEnd(context, { ...wanted, keyId, endsAt: Date.now() + 60_000 });
    expect((await changeKey(context, { ...wanted, name: 'iOS', origins: [] })).keyId).toBe(first.record.keyId);
    await expect(revokeKey(context, { ...wanted, environmentId: 'other', keyId })).rejects.toMatchObject(NOT_FOUND);
  });

  it('are given to new clients oldest first, and keys with an end only if there is no other', async () => {
    const { context, store } = setUp();
    const find = async () => findPublishableKey(await store.readAll(), wanted.environmentId);
    await createKey(context, secret);
    expect(await find()).toBeNull();
    const [first, second] = [await createKey(context, wanted), await createKey(context, wanted)];
    expect(await find()).toBe(first.key);
    const endsAt = Date.now() + 60_000;
    await setKeyEnd(context, { ...wanted, keyId: first.record.keyId, endsAt });
    expect(await find()).toBe(second.key);
    await setKeyEnd(context, { ...wanted, keyId: second.record.keyId, endsAt });
    expect(await find()).toBe(second.key);
  });

  it('keep working until the chosen time when refreshed, together with a successor that shares their rate limit', async () => {
    const { context, bob, keys } = setUp();
    const first = await createKey(context, { ...wanted, name: 'iOS 1' });
    await changeKey(context, { ...wanted, origins: ['https://game.example'] });
    const endsAt = Date.now() + 86_400_000;
    const second = await refreshKey(bob, { ...wanted, name: 'iOS 2', endsAt });
    const limitId = first.record.keyId;
    const shared = { revokedAt: null, limitId, origins: ['https://game.example'] };
    const expected = [
      { ...shared, keyId: first.record.keyId, text: first.key, name: 'iOS 1', endsAt, changedBy: 'bob' },
      { ...shared, keyId: second.record.keyId, text: second.key, name: 'iOS 2', endsAt: null },
    ];
    expect(await keys()).toMatchObject(expected);
    expect(await refreshKey(context, wanted)).toMatchObject({ record: { limitId, name: 'iOS 2' } });
    const own = await createKey(context, wanted);
    expect(own.record.limitId).toBe(own.record.keyId);
  });

  it('all stay live if a process crashes after it has created a successor', async () => {
    const { context, view, log, keys } = setUp();
    await createKey(context, wanted);
    let appends = 0;
    const append: typeof log.append = (record) =>
      ++appends === 1 ? log.append(record) : Promise.reject(new Error('crashed'));
    const store = createRecordStore({ view, log: { ...log, append } }, ada);
    await expect(refreshKey({ store, prefix }, { ...wanted, endsAt: Date.now() + 1_000 })).rejects.toThrow('crashed');
    expect(await keys()).toMatchObject([{ revokedAt: null, endsAt: null }, { revokedAt: null }]);
  });

  it.each([0, -1, KEY_END_MAX_MS + 60_000, Number.NaN])('cannot end in %d ms', async (inMs) => {
    const { context, log } = setUp();
    await createKey(context, wanted);
    const endsAt = Date.now() + inMs;
    for (const change of [refreshKey, setKeyEnd])
      await expect(change(context, { ...wanted, endsAt })).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
    expect(log.appended).toHaveLength(1);
  });

  it('of releases without ends and shared limits are live until revoked and have their own limit', async () => {
    const { context, store } = setUp();
    const { record } = await createKey(context, wanted);
    const [{ live, ...rest }] = (await store.readAll()) as [AccessKeyRecord];
    const { endsAt: _, limitId: __, ...old } = live!;
    expect(keysOf({ ...rest, live: old as typeof live })).toEqual([record]);
  });

  it('reject the second of two concurrent refreshes', async () => {
    const { context, keys } = setUp();
    await createKey(context, wanted);
    const results = await Promise.allSettled([refreshKey(context, wanted), refreshKey(context, wanted)]);
    expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    expect(await keys()).toHaveLength(2);
  });

  it('are ended and replaced in one record, which is written to the log before the view', async () => {
    const { context, log, crashing, store, view } = setUp();
    const { record } = await createKey(context, wanted);
    await expect(refreshKey(crashing, wanted)).rejects.toThrow(ViewFault);
    expect(log.appended).toHaveLength(2);
    expect((await view.readSince(null)).records.flatMap(keysOf)).toEqual([record]);
    const [ended, successor] = keysOf((await store.readAll())[0]!);
    expect(ended).toMatchObject({ keyId: record.keyId, revokedAt: expect.any(Number) });
    expect(successor).toMatchObject({ revokedAt: null });
  });

  it('are unchanged if the log does not confirm a change', async () => {
    const { context, view, log, keys } = setUp();
    const { record } = await createKey(context, wanted);
    const failing = { ...log, append: () => Promise.reject(new Error('no brokers')) };
    const store = createRecordStore({ view, log: failing }, ada);
    await expect(refreshKey({ store, prefix }, wanted)).rejects.toThrow('no brokers');
    expect(await keys()).toEqual([record]);
  });

  it('can be revoked and then created again', async () => {
    const { context, store } = setUp();
    const { record } = await createKey(context, wanted);
    expect(await revokeKey(context, wanted)).toMatchObject({ keyId: record.keyId, revokedAt: expect.any(Number) });
    expect(findLiveKey(await store.readAll(), wanted)).toBeNull();
    for (const change of [refreshKey, revokeKey])
      await expect(change(context, wanted)).rejects.toMatchObject(NOT_FOUND);
    await createKey(context, wanted);
  });

  it('stay revoked even if an older record is appended again', async () => {
    const { context, log, view, store } = setUp();
    await createKey(context, wanted);
    await revokeKey(context, wanted);
    await log.append(log.appended[0]!);
    await syncFromLog({ view, log });
    expect(findLiveKey(await store.readAll(), wanted)).toBeNull();
    const fresh = createMemoryRecords(ACCESS_KEYS);
    await rebuildRecords({ view: fresh, log });
    expect(findLiveKey((await fresh.readSince(null)).records, wanted)).toBeNull();
  });

  it('are listed with only the 50 most recently ended keys', async () => {
    const { context, keys } = setUp();
    await createKey(context, wanted);
    for (let i = 0; i < ENDED_KEYS_KEPT + 2; i++) await refreshKey(context, wanted);
    const listed = await keys();
    expect(listed).toHaveLength(ENDED_KEYS_KEPT + 1);
    expect(listed.at(-1)?.revokedAt).toBeNull();
  });

  it('keep the allowed origins of a publishable key when refreshed', async () => {
    const { context, bob, keys } = setUp();
    const { record } = await createKey(context, wanted);
    const { environmentId } = wanted;
    const changed = await changeKey(bob, { environmentId, origins: ['HTTPS://Game.Example:443/'] });
    expect(changed).toEqual({ ...record, origins: ['https://game.example'], changedBy: 'bob' });
    expect(await keys()).toEqual([changed]);
    const next = await refreshKey(context, wanted);
    expect(next.record.origins).toEqual(['https://game.example']);
    await revokeKey(context, wanted);
    await expect(changeKey(context, { environmentId, origins: [] })).rejects.toMatchObject(NOT_FOUND);
  });
});
