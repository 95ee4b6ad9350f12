import { describe, expect, it } from 'vitest';
import { createRecordStore } from '../records/record-store.ts';
import { ViewFault } from '../records/record-view.ts';
import { rebuildRecords, syncFromLog } from '../records/sync-from-log.ts';
import { createMemoryRecords, createMemoryStore } from '../test/index.ts';
import {
  ACCESS_KEYS,
  createKey,
  ENDED_KEYS_KEPT,
  findLiveKey,
  keysOf,
  keysOfProject,
  type NewKey,
  refreshKey,
  revokeKey,
  setKeyOrigins,
} from './access-key.ts';
import { hashKey } from './key-text.ts';

const NOT_FOUND = { code: 'RESOURCE_NOT_FOUND' };
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

  it('are limited to one live key of each kind', async () => {
    const { context, log, keys } = setUp();
    await createKey(context, wanted);
    await createKey(context, secret);
    await expect(createKey(context, secret)).rejects.toMatchObject({ code: 'CONFLICT_ERROR' });
    expect(log.appended).toHaveLength(2);
    expect((await keys()).filter(({ revokedAt }) => revokedAt === null)).toHaveLength(2);
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
    const changed = await setKeyOrigins(bob, { environmentId, origins: ['HTTPS://Game.Example:443/'] });
    expect(changed).toEqual({ ...record, origins: ['https://game.example'], changedBy: 'bob' });
    expect(await keys()).toEqual([changed]);
    const next = await refreshKey(context, wanted);
    expect(next.record.origins).toEqual(['https://game.example']);
    await revokeKey(context, wanted);
    await expect(setKeyOrigins(context, { environmentId, origins: [] })).rejects.toMatchObject(NOT_FOUND);
  });
});
