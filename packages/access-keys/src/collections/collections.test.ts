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

const CONFLICT = { code: 'CONFLICT_ERROR' };
const NOT_FOUND = { code: 'RESOURCE_NOT_FOUND' };
const contractAddress = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
const contract = { chain: 'demo-chain', contractAddress };
const owner = { projectId: 'owner', environmentId: 'owner-production', name: 'Swords' };
const rival = { projectId: 'rival', environmentId: 'rival-production', name: 'Shields' };

function setUp() {
  const [view, log] = [createMemoryRecords(COLLECTIONS), createMemoryRecordLog<CollectionRecord>()];
  const open = (changedBy: string) => createRecordStore({ view, log }, { changedBy, requestId: 'r' });
  return { view, log, open, store: open('ada') };
}

describe('a collection', () => {
  it('stores the chain, the lower-case contract address and the author of the link', async () => {
    const { store } = setUp();
    expect(await linkCollection({ store }, { ...contract, ...owner, name: '  Swords ' })).toMatchObject({
      ...owner,
      id: `demo-chain:${contractAddress.toLowerCase()}`,
      contractAddress: contractAddress.toLowerCase(),
      state: 'linked',
      revision: 1,
      changedBy: 'ada',
    });
    expect(await linkCollection({ store }, { ...contract, ...rival, chain: 'other' })).toMatchObject(rival);
  });

  it('is not linked if its address has no code or no node responds, and is linked if its chain has no nodes', async () => {
    const { store } = setUp();
    const link = (readCode: () => Promise<boolean | null>) =>
      linkCollection({ store, readCode }, { ...contract, ...owner });
    await expect(link(async () => false)).rejects.toThrow(/^There is no contract at 0x5aaeb6\w+ on demo-chain\./);
    await expect(link(() => Promise.reject(new Error('https://secret')))).rejects.toMatchObject({
      ...CONFLICT,
      message: 'The contract could not be checked, because no node of demo-chain responds. Try again later.',
    });
    expect(await store.readAll()).toEqual([]);
    expect(await link(async () => null)).toMatchObject({ state: 'linked' });
    await unlinkCollection({ store }, { ...contract, ...owner });
    const without = { store, readCode: async () => false };
    for (const change of [relinkCollection, moveCollection])
      await expect(change(without, { ...contract, ...owner })).rejects.toThrow(/^There is no contract/);
  });

  it('belongs to one project, and an error does not reveal which project', async () => {
    const { store } = setUp();
    await linkCollection({ store }, { ...contract, ...rival });
    const refused = await linkCollection({ store }, { ...contract, ...owner }).catch((fault) => fault);
    expect(refused).toMatchObject(CONFLICT);
    expect(JSON.stringify([refused, refused.message, refused.details])).not.toMatch(/rival|Shields/);
    for (const change of [unlinkCollection, renameCollection, relinkCollection])
      await expect(change({ store }, { ...contract, ...owner })).rejects.toMatchObject(NOT_FOUND);
    expect(collectionsOf(await store.readAll(), 'owner')).toEqual([]);
  });

  it('can be linked by another project after it is unlinked', async () => {
    const { store } = setUp();
    await linkCollection({ store }, { ...contract, ...owner });
    await unlinkCollection({ store }, { ...contract, ...owner });
    await expect(unlinkCollection({ store }, { ...contract, ...owner })).rejects.toMatchObject(CONFLICT);
    expect(await linkCollection({ store }, { ...contract, ...rival })).toMatchObject({ ...rival, revision: 3 });
    await expect(relinkCollection({ store }, { ...contract, ...owner })).rejects.toMatchObject(NOT_FOUND);
  });

  it("keeps its name when linked again, and can move between the project's environments", async () => {
    const { store } = setUp();
    await linkCollection({ store }, { ...contract, ...owner });
    await renameCollection({ store }, { ...contract, ...owner, name: 'Axes' });
    await unlinkCollection({ store }, { ...contract, ...owner });
    const elsewhere = { ...contract, projectId: 'owner', environmentId: 'owner-development' };
    const linked = { name: 'Axes', state: 'linked', environmentId: 'owner-development' };
    expect(await relinkCollection({ store }, elsewhere)).toMatchObject(linked);
    await expect(relinkCollection({ store }, elsewhere)).rejects.toMatchObject(CONFLICT);
  });

  it.each([
    ['a chain with a path', { chain: '../demo' }],
    ['an empty chain', { chain: '' }],
    ['a chain of 65 characters', { chain: 'a'.repeat(65) }],
    ['an address that is too short', { contractAddress: '0xab' }],
    ['an address without 0x', { contractAddress: 'ab'.repeat(21) }],
    ['an address with other characters', { contractAddress: `0x${'g'.repeat(40)}` }],
    ['a blank name', { name: '  ' }],
    ['a name of 201 characters', { name: 'a'.repeat(201) }],
  ])('cannot be linked with %s', async (_what, wrong) => {
    const { store, log } = setUp();
    const refused = linkCollection({ store }, { ...contract, ...owner, ...wrong });
    await expect(refused).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
    expect(log.appended).toEqual([]);
  });
});

const PROJECT_IDS = ['a', 'b', 'c'];
const ADDRESSES = ['1', '2'].map((digit) => `0x${digit.repeat(40)}`);
const step = fc.record({
  name: fc.constantFrom('link', 'link', 'rename', 'unlink', 'relink'),
  projectId: fc.constantFrom(...PROJECT_IDS),
  environment: fc.constantFrom('production', 'development'),
  contractAddress: fc.constantFrom(...ADDRESSES),
  crashes: fc.boolean(),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

function perform(store: RecordStore<CollectionRecord>, { name, projectId, environment, ...rest }: Step) {
  const { contractAddress } = rest;
  const at = { chain: 'demo-chain', contractAddress, projectId, environmentId: `${projectId}-${environment}` };
  if (name === 'link') return linkCollection({ store }, { ...at, name: 'n' });
  if (name === 'rename') return renameCollection({ store }, { ...at, name: 'm' });
  return name === 'unlink' ? unlinkCollection({ store }, at) : relinkCollection({ store }, at);
}

/** Asserts that each record is a valid successor to the previous record with the same id. */
function expectValidHistory(log: readonly CollectionRecord[]): void {
  const latest = new Map<string, CollectionRecord>();
  for (const record of log) {
    const before = latest.get(record.id);
    expect(record.id).toBe(`${record.chain}:${record.contractAddress}`);
    expect(record.environmentId.startsWith(`${record.projectId}-`)).toBe(true);
    expect(record.revision).toBe((before?.revision ?? 0) + 1);
    if (before?.state === 'linked') expect(record.projectId).toBe(before.projectId);
    if (record.state === 'unlinked') expect(before?.state).toBeDefined();
    latest.set(record.id, record);
  }
}

describe('createIsUnlinked', () => {
  it('returns true once the collection is unlinked or moved, and false for an unknown contract', async () => {
    const { store } = setUp();
    const copy: { records: readonly CollectionRecord[]; ageMs: number } = { records: [], ageMs: 100 };
    const isUnlinked = createIsUnlinked(copy, () => 10_000);
    const owned = { ...contract, contractAddress: contractAddress.toLowerCase(), projectId: 'owner', requestedAt: 0 };
    const expectUnlinked = async (expected: boolean) => {
      copy.records = await store.readAll();
      expect(isUnlinked(owned)).toBe(expected);
    };
    await expectUnlinked(false);
    await linkCollection({ store }, { ...contract, ...owner });
    await expectUnlinked(false);
    await unlinkCollection({ store }, { ...contract, ...owner });
    await expectUnlinked(true);
    await relinkCollection({ store }, { ...contract, ...owner });
    await expectUnlinked(false);
    await moveCollection({ store }, { ...contract, ...rival });
    await expectUnlinked(true);
  });

  it('returns false for a request that may be newer than the copy', async () => {
    const { store } = setUp();
    await linkCollection({ store }, { ...contract, ...rival });
    await unlinkCollection({ store }, { ...contract, ...rival });
    const copy = { records: await store.readAll(), ageMs: 5_000 };
    const isUnlinked = createIsUnlinked(copy, () => 100_000);
    const owned = { ...contract, contractAddress: contractAddress.toLowerCase(), projectId: 'owner' };
    expect(isUnlinked({ ...owned, requestedAt: 94_000 })).toBe(false);
    expect(isUnlinked({ ...owned, requestedAt: 92_000 })).toBe(true);
  });
});

describe('concurrent collection changes', () => {
  it('link each contract to at most one project with consecutive revisions, even if processes crash', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(step, { maxLength: 4 }), { maxLength: 8 }), async (rounds) => {
        const { view, log, open, store } = setUp();
        const crashing = { ...view, update: () => Promise.reject(new Error('killed')) };
        const crashed = createRecordStore({ view: crashing, log }, { changedBy: 'bob', requestId: 'r' });
        for (const steps of rounds)
          await Promise.allSettled(steps.map((each) => perform(each.crashes ? crashed : open(each.projectId), each)));
        expectValidHistory(log.appended);
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
