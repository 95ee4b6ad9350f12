import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createRecordStore, type RecordStore } from '../records/record-store.ts';
import { syncFromLog } from '../records/sync-from-log.ts';
import { createMemoryRecordLog, createMemoryRecords } from '../test/memory-records.ts';
import {
  COLLECTIONS,
  type CollectionRecord,
  collectionsOf,
  createIsUnlinked,
  linkCollection,
  moveCollection,
  relinkCollection,
  renameCollection,
  unlinkCollection,
} from './collection.ts';

const contractAddress = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
const contract = { chain: 'demo-chain', contractAddress };
const ours = { projectId: 'ours', environmentId: 'ours-production', name: 'Swords' };
const theirs = { projectId: 'theirs', environmentId: 'theirs-production', name: 'Shields' };

function setUp() {
  const [view, log] = [createMemoryRecords(COLLECTIONS), createMemoryRecordLog<CollectionRecord>()];
  const open = (changedBy: string) => createRecordStore({ view, log }, { changedBy, requestId: 'r' });
  return { view, log, open, store: open('ada') };
}

describe('a collection', () => {
  it('is one contract on one chain, in lower case, with who linked it', async () => {
    const { store } = setUp();
    expect(await linkCollection({ store }, { ...contract, ...ours, name: '  Swords ' })).toMatchObject({
      ...ours,
      id: `demo-chain:${contractAddress.toLowerCase()}`,
      contractAddress: contractAddress.toLowerCase(),
      state: 'linked',
      revision: 1,
      changedBy: 'ada',
    });
    expect(await linkCollection({ store }, { ...contract, ...theirs, chain: 'other' })).toMatchObject(theirs);
  });

  it('belongs to one project, and nobody learns which other one has it', async () => {
    const { store } = setUp();
    await linkCollection({ store }, { ...contract, ...theirs });
    const refused = await linkCollection({ store }, { ...contract, ...ours }).catch((fault) => fault);
    expect(refused).toMatchObject({ code: 'CONFLICT_ERROR' });
    expect(JSON.stringify([refused, refused.message, refused.details])).not.toMatch(/theirs|Shields/);
    for (const change of [unlinkCollection, renameCollection, relinkCollection])
      await expect(change({ store }, { ...contract, ...ours })).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' });
    expect(collectionsOf(await store.readAll(), 'ours')).toEqual([]);
  });

  it('may be linked by anybody once it is unlinked, and then is not the one it was', async () => {
    const { store } = setUp();
    await linkCollection({ store }, { ...contract, ...ours });
    await unlinkCollection({ store }, { ...contract, ...ours });
    await expect(unlinkCollection({ store }, { ...contract, ...ours })).rejects.toMatchObject({
      code: 'CONFLICT_ERROR',
    });
    expect(await linkCollection({ store }, { ...contract, ...theirs })).toMatchObject({ ...theirs, revision: 3 });
    await expect(relinkCollection({ store }, { ...contract, ...ours })).rejects.toMatchObject({
      code: 'RESOURCE_NOT_FOUND',
    });
  });

  it('is linked again under its name, and moves between environments of its project', async () => {
    const { store } = setUp();
    await linkCollection({ store }, { ...contract, ...ours });
    await renameCollection({ store }, { ...contract, ...ours, name: 'Axes' });
    await unlinkCollection({ store }, { ...contract, ...ours });
    const elsewhere = { ...contract, projectId: 'ours', environmentId: 'ours-development' };
    const linked = { name: 'Axes', state: 'linked', environmentId: 'ours-development' };
    expect(await relinkCollection({ store }, elsewhere)).toMatchObject(linked);
    await expect(relinkCollection({ store }, elsewhere)).rejects.toMatchObject({ code: 'CONFLICT_ERROR' });
  });

  it.each([
    ['a chain with a path', { chain: '../demo' }],
    ['a chain of nothing', { chain: '' }],
    ['a chain of 65 characters', { chain: 'a'.repeat(65) }],
    ['an address that is too short', { contractAddress: '0xab' }],
    ['an address without 0x', { contractAddress: 'ab'.repeat(21) }],
    ['an address of other letters', { contractAddress: `0x${'g'.repeat(40)}` }],
    ['a name of spaces', { name: '  ' }],
    ['a name of 201 characters', { name: 'a'.repeat(201) }],
  ])('is not linked with %s', async (_what, wrong) => {
    const { store, log } = setUp();
    const refused = linkCollection({ store }, { ...contract, ...ours, ...wrong });
    await expect(refused).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
    expect(log.appended).toEqual([]);
  });
});

const PROJECT_IDS = ['a', 'b', 'c'];
const ADDRESSES = ['1', '2'].map((digit) => `0x${digit.repeat(40)}`);
const act = fc.record({
  name: fc.constantFrom('link', 'link', 'rename', 'unlink', 'relink'),
  projectId: fc.constantFrom(...PROJECT_IDS),
  environment: fc.constantFrom('production', 'development'),
  contractAddress: fc.constantFrom(...ADDRESSES),
  dies: fc.boolean(),
});
type Act = typeof act extends fc.Arbitrary<infer T> ? T : never;

function perform(store: RecordStore<CollectionRecord>, { name, projectId, environment, ...rest }: Act) {
  const { contractAddress } = rest;
  const at = { chain: 'demo-chain', contractAddress, projectId, environmentId: `${projectId}-${environment}` };
  if (name === 'link') return linkCollection({ store }, { ...at, name: 'n' });
  if (name === 'rename') return renameCollection({ store }, { ...at, name: 'm' });
  return name === 'unlink' ? unlinkCollection({ store }, at) : relinkCollection({ store }, at);
}

/** What each record of the log may come after. */
function expectSound(log: readonly CollectionRecord[]): void {
  const standing = new Map<string, CollectionRecord>();
  for (const record of log) {
    const before = standing.get(record.id);
    expect(record.id).toBe(`${record.chain}:${record.contractAddress}`);
    expect(record.environmentId.startsWith(`${record.projectId}-`)).toBe(true);
    expect(record.revision).toBe((before?.revision ?? 0) + 1);
    if (before?.state === 'linked') expect(record.projectId).toBe(before.projectId);
    if (record.state === 'unlinked') expect(before?.state).toBeDefined();
    standing.set(record.id, record);
  }
}

describe('the check whether a collection no longer belongs to a project', () => {
  it('is true once the project has unlinked it or another project has it, and false for an unknown contract', async () => {
    const { store } = setUp();
    const copy: { records: readonly CollectionRecord[]; ageMs: number } = { records: [], ageMs: 100 };
    const isUnlinked = createIsUnlinked(copy, () => 10_000);
    const owned = {
      ...contract,
      contractAddress: contractAddress.toLowerCase(),
      projectId: 'ours',
      requestedAt: 1_000,
    };
    const expectAfter = async (isEnded: boolean) => {
      copy.records = await store.readAll();
      expect(isUnlinked(owned)).toBe(isEnded);
    };
    await expectAfter(false);
    await linkCollection({ store }, { ...contract, ...ours });
    await expectAfter(false);
    await unlinkCollection({ store }, { ...contract, ...ours });
    await expectAfter(true);
    await relinkCollection({ store }, { ...contract, ...ours });
    await expectAfter(false);
    await moveCollection({ store }, { ...contract, ...theirs });
    await expectAfter(true);
  });

  it('is false for a request that may be newer than the copy: the contract may have been linked just before it', async () => {
    const { store } = setUp();
    await linkCollection({ store }, { ...contract, ...theirs });
    await unlinkCollection({ store }, { ...contract, ...theirs });
    const copy = { records: await store.readAll(), ageMs: 5_000 };
    const isUnlinked = createIsUnlinked(copy, () => 100_000);
    const owned = { ...contract, contractAddress: contractAddress.toLowerCase(), projectId: 'ours' };
    expect(isUnlinked({ ...owned, requestedAt: 94_000 })).toBe(false);
    expect(isUnlinked({ ...owned, requestedAt: 92_000 })).toBe(true);
  });
});

describe('collections that many change at once', () => {
  it('are linked to one project at most each, with every revision once and in order, whatever died half-way', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(act, { maxLength: 4 }), { maxLength: 8 }), async (rounds) => {
        const { view, log, open, store } = setUp();
        const dying = { ...view, update: () => Promise.reject(new Error('killed')) };
        const killed = createRecordStore({ view: dying, log }, { changedBy: 'bob', requestId: 'r' });
        for (const acts of rounds)
          await Promise.allSettled(acts.map((each) => perform(each.dies ? killed : open(each.projectId), each)));
        expectSound(log.appended);
        await syncFromLog({ view, log });
        const last = new Map(log.appended.map((record) => [record.id, record]));
        const all = await store.readAll();
        expect(new Map(all.map((record) => [record.id, record]))).toEqual(last);
        const lists = PROJECT_IDS.flatMap((projectId) => collectionsOf(all, projectId));
        expect(lists).toHaveLength(all.length);
      }),
    );
  });
});
