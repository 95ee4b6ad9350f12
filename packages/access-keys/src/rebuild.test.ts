import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { KeyLog } from './key-log.ts';
import type { KeyRecord, KeyView } from './key-store.ts';
import { hashKey } from './key-text.ts';
import { createLoggedKeyStore } from './logged-key-store.ts';
import { createMemoryKeyLog, createMemoryKeyStore } from './memory/index.ts';
import { createKey, type NewKey, refreshKey, revokeKey, setKeyOrigins } from './operations.ts';
import { catchUpKeys, rebuildKeys } from './rebuild.ts';
import { LogLost, ViewFault, type ViewStanding } from './records/view-faults.ts';

const prefix = 'svcapik';
const wanted: NewKey = { projectId: 'p', environmentId: 'e-test', environment: 'production', kind: 'secret' };

function setUp() {
  const [view, log] = [createMemoryKeyStore(), createMemoryKeyLog()];
  return { view, log, context: { store: createLoggedKeyStore(view, log), prefix } };
}

/** The view of a process that dies before it reaches the view. */
const dying = (view: KeyView): KeyView => ({ ...view, replace: () => Promise.reject(new Error('killed')) });

describe('createLoggedKeyStore', () => {
  it('has a change in the log before the view has it', async () => {
    const { view, log } = setUp();
    const seen: number[] = [];
    const watched: KeyView = {
      ...view,
      replace: (ended, added) => {
        seen.push(log.appended.length);
        return view.replace(ended, added);
      },
    };
    const context = { store: createLoggedKeyStore(watched, log), prefix };
    await createKey(context, wanted);
    await refreshKey(context, wanted);
    await revokeKey(context, wanted);
    expect(seen).toEqual([1, 3, 4]);
  });

  it('has a change of origins in the log before the view has it, and gives it back to a view that missed it', async () => {
    const { view, log, context } = setUp();
    const { record } = await createKey(context, { ...wanted, kind: 'publishable' });
    const deaf: KeyView = { ...view, amend: () => Promise.reject(new Error('killed')) };
    const change = { environmentId: wanted.environmentId, origins: ['https://game.example'] };
    await expect(setKeyOrigins({ store: createLoggedKeyStore(deaf, log) }, change)).rejects.toThrow(ViewFault);
    expect([log.appended.length, (await view.find(record.hash))?.origins]).toEqual([2, []]);
    await rebuildKeys(view, log);
    expect(await view.find(record.hash)).toMatchObject({ origins: ['https://game.example'], revokedAt: null });
  });

  it('puts the end of a key and its successor into one append', async () => {
    const { view } = setUp();
    const appends: (readonly KeyRecord[])[] = [];
    const log: KeyLog = { append: async (records) => void appends.push(records), readAll: async () => [] };
    const context = { store: createLoggedKeyStore(view, log), prefix };
    const first = await createKey(context, wanted);
    const second = await refreshKey(context, wanted);
    expect(appends[1]).toEqual([{ ...first.record, revokedAt: expect.any(Number) }, second.record]);
  });

  it('leaves the view as it was when the log does not confirm', async () => {
    const { view, log } = setUp();
    const { record } = await createKey({ store: createLoggedKeyStore(view, log), prefix }, wanted);
    const deaf: KeyLog = { ...log, append: () => Promise.reject(new Error('no brokers')) };
    await expect(refreshKey({ store: createLoggedKeyStore(view, deaf), prefix }, wanted)).rejects.toThrow('no brokers');
    expect(await view.findLive(wanted.environmentId, wanted.kind)).toEqual(record);
  });

  it('writes nothing to the log for a change that is refused', async () => {
    const { log, context } = setUp();
    await createKey(context, wanted);
    await expect(createKey(context, wanted)).rejects.toMatchObject({ code: 'CONFLICT_ERROR' });
    expect(log.appended).toHaveLength(1);
  });

  it('rebuilds a view that has lost its keys before it decides by it', async () => {
    const { log, context } = setUp();
    const { record } = await createKey(context, wanted);
    const empty = createMemoryKeyStore();
    const lost: KeyView = { ...empty, isComplete: async () => (await empty.hashes()).length > 0 };
    const store = createLoggedKeyStore(lost, log);
    expect(await store.list('p')).toEqual([record]);
    await expect(createKey({ store, prefix }, wanted)).rejects.toMatchObject({ code: 'CONFLICT_ERROR' });
  });
});

describe('rebuildKeys', () => {
  it('mends a refresh that died between log and view: the old key ends', async () => {
    const { view, log, context } = setUp();
    const { record } = await createKey(context, wanted);
    const killed = { store: createLoggedKeyStore(dying(view), log), prefix };
    await expect(refreshKey(killed, wanted)).rejects.toThrow(ViewFault);
    expect((await view.find(record.hash))?.revokedAt).toBeNull();
    expect(await rebuildKeys(view, log)).toEqual({ keys: 2, live: 1, removed: 0, ended: 0 });
    expect((await view.find(record.hash))?.revokedAt).not.toBeNull();
    expect(await view.findLive(wanted.environmentId, wanted.kind)).toMatchObject({ keyId: log.appended.at(-1)?.keyId });
  });

  it('keeps the key that was shown when the refresh was repeated after a death, and ends the other in the log', async () => {
    const { view, log, context } = setUp();
    await createKey(context, wanted);
    const killed = { store: createLoggedKeyStore(dying(view), log), prefix };
    await expect(refreshKey(killed, wanted)).rejects.toThrow(ViewFault);
    const shown = await refreshKey(context, wanted);
    expect(await rebuildKeys(view, log)).toEqual({ keys: 3, live: 1, removed: 0, ended: 1 });
    expect(await view.findLive(wanted.environmentId, wanted.kind)).toEqual(shown.record);
    const fresh = createMemoryKeyStore();
    expect(await rebuildKeys(fresh, log)).toMatchObject({ live: 1, ended: 0 });
    expect(await fresh.findLive(wanted.environmentId, wanted.kind)).toEqual(shown.record);
  });

  it('takes out a key that the log does not know', async () => {
    const { view, log, context } = setUp();
    await createKey(context, wanted);
    const { record } = await createKey({ store: view, prefix }, { ...wanted, kind: 'publishable' });
    expect(await rebuildKeys(view, log)).toMatchObject({ removed: 1 });
    expect(await view.find(record.hash)).toBeNull();
  });

  it('changes nothing when the log is empty and the view is not: the log was lost', async () => {
    const { view, log } = setUp();
    const { record } = await createKey({ store: view, prefix }, wanted);
    await expect(rebuildKeys(view, log)).rejects.toThrow(LogLost);
    expect(await view.find(record.hash)).toEqual(record);
  });

  it('gives the same verdict on every key from an empty view, whatever was done and wherever commands died', async () => {
    const step = fc.record({
      act: fc.constantFrom(createKey, refreshKey, revokeKey),
      environmentId: fc.constantFrom('a', 'b'),
      kind: fc.constantFrom('publishable' as const, 'secret' as const),
      dies: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
        const { view, log } = setUp();
        const shown: string[] = [];
        for (const { act, environmentId, kind, dies } of steps) {
          const store = createLoggedKeyStore(dies ? dying(view) : view, log);
          const made = await act({ store, prefix }, { ...wanted, environmentId, kind }).catch(() => null);
          if (made !== null && 'key' in made) shown.push(made.key);
        }
        await rebuildKeys(view, log);
        const fresh = createMemoryKeyStore();
        await rebuildKeys(fresh, log);
        for (const key of shown) expect(await fresh.find(hashKey(key))).toEqual(await view.find(hashKey(key)));
        const live = (await log.readAll()).filter(({ revokedAt }) => revokedAt === null);
        const slots = live.map(({ environmentId, kind }) => `${environmentId} ${kind}`);
        expect(new Set(slots).size).toBe(slots.length);
        for (const record of live) expect(await fresh.findLive(record.environmentId, record.kind)).toEqual(record);
      }),
      { numRuns: 300 },
    );
  });
});

describe('catchUpKeys', () => {
  /** A view as it stands after its store was started anew. */
  function startAnew(view: KeyView, completeIn: string | null = 'the run before') {
    let standing: ViewStanding = { run: 'this run', completeIn };
    const restored: (readonly KeyRecord[])[] = [];
    const anew: KeyView = {
      ...view,
      isComplete: async () => standing.completeIn === standing.run,
      standing: async () => standing,
      restore: async (records, strangers, run) => {
        await view.restore(records, strangers, run);
        expect(strangers).toEqual([]);
        restored.push(records);
        standing = { run, completeIn: run };
      },
    };
    return { anew, restored };
  }

  it('ends what the log ended, brings in what it added, and does so once for all processes', async () => {
    const { log, context } = setUp();
    const first = await createKey(context, wanted);
    // What a store has that lost everything behind the first key.
    const old = createMemoryKeyStore();
    await old.replace(null, first.record);
    const second = await refreshKey(context, wanted);
    const { anew, restored } = startAnew(old);
    expect(await Promise.all([catchUpKeys(anew, log), catchUpKeys(anew, log)])).toEqual([2, null]);
    expect(restored).toHaveLength(1);
    expect((await anew.find(first.record.hash))?.revokedAt).not.toBeNull();
    expect(await anew.findLive(wanted.environmentId, wanted.kind)).toEqual(second.record);
  });

  it('takes nothing out and writes nothing to the log, and of second live keys brings in the newest alone', async () => {
    const { view, log, context } = setUp();
    await createKey(context, wanted);
    const stranger = await createKey({ store: view, prefix }, { ...wanted, kind: 'publishable' });
    const killed = { store: createLoggedKeyStore(dying(view), log), prefix };
    await expect(refreshKey(killed, wanted)).rejects.toThrow(ViewFault);
    const orphan = log.appended.at(-1)!;
    const shown = await refreshKey(context, wanted);
    const appended = log.appended.length;
    const { anew } = startAnew(view);
    await catchUpKeys(anew, log);
    expect(log.appended).toHaveLength(appended);
    expect(await anew.find(stranger.record.hash)).toEqual(stranger.record);
    expect(await anew.find(orphan.hash)).toBeNull();
    expect(await anew.findLive(wanted.environmentId, wanted.kind)).toEqual(shown.record);
  });

  it('leaves a view in use whose log is empty, and one that never had a key in doubt', async () => {
    const { view, log } = setUp();
    const [used, fresh] = [startAnew(view), startAnew(createMemoryKeyStore(), null)];
    expect(await catchUpKeys(used.anew, log)).toBe(0);
    expect(await used.anew.isComplete()).toBe(true);
    expect(await catchUpKeys(fresh.anew, log)).toBeNull();
    expect(await fresh.anew.isComplete()).toBe(false);
  });
});
