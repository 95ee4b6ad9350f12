import { beforeEach, describe, expect, it } from 'vitest';
import type { ErasureTarget } from '../rows.ts';
import { AFTER, BEFORE, createRowsOf, newBatch, newEnvironment, newKey, sweepAll, T } from '../test/people.ts';
import {
  beginErasure,
  createReceiptOf,
  EMPTY_PEOPLE,
  type ErasedPerson,
  type ErasureStores,
  openMemoryStores,
  putErased,
} from '../test/stores.ts';
import { dropStaleBatches, searchTimeOf } from './batches.ts';
import { removeFromDisk, type Survivors, scrub } from './scrub.ts';

const NOW = T + 24 * 3_600_000;
const wallClockMs = () => NOW;

describe('scrub', () => {
  let stores: ErasureStores;
  beforeEach(async () => {
    stores = await openMemoryStores();
  });

  const names = async (table: string, environmentId: string) => {
    const column = table === 'identity_overrides' ? 'kind' : 'trace_id';
    return (await stores.harness.read(table, environmentId, [column])).map(([name]) => name).sort();
  };
  const run = (over: Partial<Parameters<typeof scrub>[0]> = {}) => {
    const { harness, records } = stores;
    return scrub({ rows: harness.rows, records, people: EMPTY_PEOPLE, wallClockMs, ...over });
  };

  it('a scrub deletes rows up to the cut-off from every table and reports them without keys', async () => {
    const environmentId = newEnvironment();
    const [erased, other] = [newKey(), newKey()];
    await putErased(stores.records, { environmentId, keys: [erased] });
    const { event, link, override, consent } = createRowsOf(environmentId);
    const { add } = stores.harness;
    await add('events', event({ name: 'old', identity_key: erased }));
    await add('events', event({ name: 'new', identity_key: erased, event_time: AFTER, received_at: AFTER }));
    await add('events', event({ name: 'other', identity_key: other }));
    await add('events', event({ name: 'shared', identity_key: other, anonymous_key: erased, anonymous_id: 'd' }));
    await add('identity_links', link({ name: 'old', b_key: erased }));
    await add('identity_links', link({ name: 'other' }));
    await add('identity_overrides', override({ name: 'old', identity_key: erased, linked_at: BEFORE }));
    await add('consent_log', consent({ name: 'old', identity_key: erased }));
    const reported: { survivors: readonly Survivors[]; pass: number }[] = [];
    const { found, swept } = await run({ onSurvivors: (survivors, pass) => void reported.push({ survivors, pass }) });
    const own = { as: 'own', environmentId, rows: 1 };
    const expected = [
      { ...own, table: 'consent_log', column: 'identity_key' },
      { ...own, table: 'events', column: 'anonymous_key', as: 'carried' },
      { ...own, table: 'events', column: 'identity_key' },
      { ...own, table: 'identity_links', column: 'b_key' },
      { ...own, table: 'identity_overrides', column: 'identity_key' },
    ];
    expect(found).toEqual(expected);
    expect(swept).toEqual(expected);
    expect(reported[0]).toEqual({ survivors: expected, pass: 1 });
    expect(await names('events', environmentId)).toEqual(['new', 'other', 'shared']);
    expect(await names('identity_links', environmentId)).toEqual(['other']);
    expect(await names('identity_overrides', environmentId)).toEqual([]);
    expect(await names('consent_log', environmentId)).toEqual([]);
    expect(await stores.harness.read('events', environmentId, ['anonymous_id'])).toEqual([[''], [''], ['']]);
    const again = await run({ onSurvivors: () => expect.unreachable('no rows remain') });
    expect(again).toMatchObject({ found: [], swept: [] });
    expect(await stores.harness.rows.readBatches()).toEqual([]);
  });

  it('rows of an unfinished erasure are not survivors', async () => {
    const environmentId = newEnvironment();
    const [fenced, returning] = [newKey(), newKey()];
    await beginErasure(stores.records, { environmentId, keys: [fenced] });
    // This identity was already erased, and a new request has a later cut-off.
    await putErased(stores.records, { environmentId, keys: [returning] });
    await beginErasure(stores.records, { environmentId, keys: [returning], cutoffMs: AFTER });
    const { event } = createRowsOf(environmentId);
    await stores.harness.add('events', event({ name: 'first', identity_key: fenced }));
    const later = { identity_key: returning, event_time: AFTER, received_at: AFTER };
    await stores.harness.add('events', event({ name: 'second', ...later }));
    const { found, unfinished } = await run();
    expect(found).toEqual([]);
    expect(unfinished).toBeGreaterThanOrEqual(2);
    expect(await names('events', environmentId)).toEqual(['first', 'second']);
  });

  it('a scrub splits all fences into batches', async () => {
    const environmentId = newEnvironment();
    const people = Array.from({ length: 7 }, newKey);
    for (const key of people) {
      await putErased(stores.records, { environmentId, keys: [key] });
      await stores.harness.add('events', createRowsOf(environmentId).event({ name: 'old', identity_key: key }));
    }
    let batches = 0;
    const { rows } = stores.harness;
    const putTargets = async (batch: Buffer, targets: readonly ErasureTarget[]) => {
      batches++;
      expect(targets.length).toBeLessThanOrEqual(3);
      expect(searchTimeOf(batch)).toBe(NOW);
      await rows.putTargets(batch, targets);
    };
    const { fences, found } = await run({ targetsMax: 3, rows: { ...rows, putTargets } });
    expect(fences).toBeGreaterThanOrEqual(7);
    expect(batches).toBe(Math.ceil(fences / 3));
    expect(found).toEqual([{ table: 'events', column: 'identity_key', as: 'own', environmentId, rows: 7 }]);
    expect(await names('events', environmentId)).toEqual([]);
    expect(await rows.readBatches()).toEqual([]);
  });

  it('a failed or aborted scrub drops its targets', async () => {
    const environmentId = newEnvironment();
    await putErased(stores.records, { environmentId, keys: [newKey()] });
    const { rows } = stores.harness;
    const findSurvivors = async () => {
      expect(await rows.readBatches()).toHaveLength(1);
      throw new Error('the store is unavailable');
    };
    await expect(run({ rows: { ...rows, findSurvivors } })).rejects.toThrow('the store is unavailable');
    expect(await rows.readBatches()).toEqual([]);
    const stop = new AbortController();
    const putTargets: typeof rows.putTargets = async (...all) => {
      await rows.putTargets(...all);
      stop.abort(new Error('aborted by the test'));
    };
    await expect(run({ rows: { ...rows, putTargets }, signal: stop.signal })).rejects.toThrow('aborted by the test');
    expect(await rows.readBatches()).toEqual([]);
  });

  it('a scrub fails if rows keep arriving', async () => {
    const environmentId = newEnvironment();
    const key = newKey();
    await putErased(stores.records, { environmentId, keys: [key] });
    const { rows, add } = stores.harness;
    const put = () => add('events', createRowsOf(environmentId).event({ name: 'old', identity_key: key }));
    await put();
    const passes: number[] = [];
    const sweep = async (batch: Buffer) => {
      const found = await rows.sweep(batch);
      await put();
      return found;
    };
    const running = run({ rows: { ...rows, sweep }, onSurvivors: (_, pass) => void passes.push(pass) });
    await expect(running).rejects.toMatchObject({ name: 'StoreFault', code: 'SURVIVORS' });
    expect(passes).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(await rows.readBatches()).toEqual([]);
    expect((await run()).found).toHaveLength(1);
  });

  it('a scrub first drops stale searches but keeps erasure batches and running searches', async () => {
    const { rows } = stores.harness;
    const target = { environmentId: newEnvironment(), key: newKey(), cutoffMs: T };
    const leaveSearch = async (startedAtMs: number) => {
      let batch: Buffer = newBatch();
      const putTargets = async (id: Buffer) => {
        batch = id;
        await rows.putTargets(id, [target]);
      };
      await putErased(stores.records, { environmentId: target.environmentId, keys: [newKey()] });
      const dropTargets = async () => {};
      await run({ rows: { ...rows, putTargets, dropTargets }, wallClockMs: () => startedAtMs });
      return batch.toString('hex');
    };
    const eraser = newBatch();
    await rows.putTargets(eraser, [target]);
    const killed = await leaveSearch(NOW - 7 * 3_600_000);
    const running = await leaveSearch(NOW - 5 * 3_600_000);
    const remaining = async () => (await rows.readBatches()).map((id) => id.toString('hex'));
    expect(await remaining()).toEqual(expect.arrayContaining([killed, running, eraser.toString('hex')]));
    await run();
    expect((await remaining()).sort()).toEqual([running, eraser.toString('hex')].sort());
    for (const id of await remaining()) await rows.dropTargets(Buffer.from(id, 'hex'));
  });

  it('dropStaleBatches drops erasure batches that are no longer in progress', async () => {
    const { rows } = stores.harness;
    const target = { environmentId: newEnvironment(), key: newKey(), cutoffMs: T };
    const [crashed, running, ending] = [newBatch(), newBatch(), newBatch()];
    for (const batch of [crashed, running, ending]) await rows.putTargets(batch, [target]);
    const readActiveBatches = async () => {
      await rows.dropTargets(ending);
      return new Set([running.toString('hex')]);
    };
    expect(await dropStaleBatches({ rows, wallClockMs })).toBe(0);
    expect(await dropStaleBatches({ rows, wallClockMs, readActiveBatches })).toBe(2);
    expect(await rows.readBatches()).toEqual([running]);
    await rows.dropTargets(running);
  });
});

describe('removeFromDisk', () => {
  let stores: ErasureStores;
  beforeEach(async () => {
    stores = await openMemoryStores();
  });

  const run = (over: Partial<Parameters<typeof removeFromDisk>[0]> = {}) => {
    const { harness, records } = stores;
    return removeFromDisk({ rows: harness.rows, records, wallClockMs, pause: async () => {}, ...over });
  };
  const addEvent = (environmentId: string, key: Buffer, over = {}) =>
    stores.harness.add('events', createRowsOf(environmentId).event({ name: 'row', identity_key: key, ...over }));
  const sweep = async (...targets: ErasureTarget[]) => {
    const batch = newBatch();
    await stores.harness.rows.putTargets(batch, targets);
    await sweepAll(stores.harness.rows, batch);
    return batch;
  };
  const erasedAtOf = async (id: Buffer) => (await stores.records.readReceipt(id))!.physicallyErasedAt;
  const erase = async (over: Partial<ErasedPerson> = {}) => {
    const person = { environmentId: newEnvironment(), keys: [newKey(), newKey()], ...over };
    const { environmentId, keys } = person;
    for (const key of keys) await addEvent(environmentId, key);
    const batch = await sweep(...keys.map((key) => ({ environmentId, key, cutoffMs: T })));
    return { ...person, batch, id: await putErased(stores.records, person) };
  };

  it('the removal marks a receipt only once, when no file contains a row, and changes no other field', async () => {
    const { id, batch } = await erase();
    const { rows } = stores.harness;
    expect(await rows.findOnDisk(batch)).not.toEqual([]);
    const before = await stores.records.readReceipt(id);
    const waits: number[] = [];
    const { marked, deferred, foundOnDisk } = await run({ onReplaced: (files) => void waits.push(files) });
    expect({ marked, deferred, foundOnDisk }).toEqual({ marked: 1, deferred: 0, foundOnDisk: [] });
    expect(await rows.findOnDisk(batch)).toEqual([]);
    expect(await stores.records.readReceipt(id)).toEqual({ ...before, physicallyErasedAt: NOW });
    await rows.dropTargets(batch);
    expect(await rows.readBatches()).toEqual([]);
    expect(await run({ wallClockMs: () => NOW + 1 })).toMatchObject({ marked: 0, deferred: 0 });
    expect(await erasedAtOf(id)).toBe(NOW);
  });

  it('the removal waits until replaced files are deleted, and fails and marks no receipts if any remain', async () => {
    const { id, batch } = await erase();
    await stores.harness.rows.dropTargets(batch);
    const { rows } = stores.harness;
    let polls = 3;
    const waits: number[] = [];
    const stuck = { ...rows, countReplaced: async () => 2 };
    await expect(run({ rows: stuck })).rejects.toMatchObject({ code: 'REPLACED' });
    expect(await erasedAtOf(id)).toBeNull();
    expect(await rows.readBatches()).toEqual([]);
    const slow = { ...rows, countReplaced: async (untilMs: number) => (polls-- > 0 ? 7 : rows.countReplaced(untilMs)) };
    await run({ rows: slow, onReplaced: (files) => void waits.push(files) });
    expect(waits.slice(0, 3)).toEqual([7, 7, 7]);
    expect(await erasedAtOf(id)).toBe(NOW);
  });

  it('if any file contains a row, no receipt is marked until the next scrub', async () => {
    const [one, other] = [await erase(), await erase()];
    for (const { batch } of [one, other]) await stores.harness.rows.dropTargets(batch);
    await addEvent(one.environmentId, one.keys[0]!);
    const survivor = { table: 'events', column: 'identity_key', as: 'own', environmentId: one.environmentId, rows: 1 };
    const reported: unknown[] = [];
    const removal = await run({ onFoundOnDisk: (found) => void reported.push(found) });
    expect(removal).toMatchObject({ marked: 0, foundOnDisk: [survivor] });
    expect(reported).toEqual([[survivor]]);
    expect([await erasedAtOf(one.id), await erasedAtOf(other.id)]).toEqual([null, null]);
    await scrub({ rows: stores.harness.rows, records: stores.records, people: EMPTY_PEOPLE, wallClockMs });
    expect(await run()).toMatchObject({ marked: 2, foundOnDisk: [] });
  });

  it('the removal ignores erasures that finish while it runs', async () => {
    const early = await erase();
    const { rows } = stores.harness;
    let late: Awaited<ReturnType<typeof erase>> | undefined;
    const removeDeleted = async () => {
      const removedAtMs = await rows.removeDeleted();
      late = await erase();
      return removedAtMs;
    };
    expect(await run({ rows: { ...rows, removeDeleted } })).toMatchObject({ marked: 1, foundOnDisk: [] });
    expect(await erasedAtOf(early.id)).toBe(NOW);
    expect(await erasedAtOf(late!.id)).toBeNull();
    for (const { batch } of [early, late!]) await rows.dropTargets(batch);
    expect(await run()).toMatchObject({ marked: 1 });
  });

  it('a receipt is deferred while another erasure of one of its identities is unfinished', async () => {
    const [kept, erasedAgain] = [newKey(), newKey()];
    // Only a fence contains the second key.
    const { id, batch, environmentId } = await erase({ keys: [kept, erasedAgain], requested: [kept] });
    await stores.harness.rows.dropTargets(batch);
    const again = { environmentId, keys: [erasedAgain], cutoffMs: AFTER };
    const second = await beginErasure(stores.records, again);
    const elsewhere = await erase();
    await stores.harness.rows.dropTargets(elsewhere.batch);
    // Simulates a merge of the identity's two fences.
    const readFences: typeof stores.records.readFences = async function* (reading) {
      for await (const fence of stores.records.readFences(reading))
        if (!(fence.key.equals(erasedAgain) && fence.erasureId.equals(id))) yield fence;
    };
    const records = { ...stores.records, readFences };
    expect(await run({ records })).toMatchObject({ marked: 1, deferred: 1 });
    expect([await erasedAtOf(id), await erasedAtOf(elsewhere.id)]).toEqual([null, NOW]);
    await stores.records.putReceipts([createReceiptOf(second, again)]);
    expect(await run({ records })).toMatchObject({ marked: 2, deferred: 0 });
  });

  it('the removal fails if fences are missing', async () => {
    const { id, batch } = await erase();
    await stores.harness.rows.dropTargets(batch);
    const records = { ...stores.records, readFences: async function* () {} };
    await expect(run({ records })).rejects.toMatchObject({ code: 'NO_TARGETS' });
    expect(await erasedAtOf(id)).toBeNull();
    expect(await run()).toMatchObject({ marked: 1 });
  });

  it('an aborted removal marks no receipts, drops its targets and can be retried', async () => {
    const { id, batch } = await erase();
    const { rows } = stores.harness;
    await rows.dropTargets(batch);
    const stop = new AbortController();
    const pause = async () => stop.abort(new Error('aborted by the test'));
    const running = run({ rows: { ...rows, countReplaced: async () => 1 }, pause, signal: stop.signal });
    await expect(running).rejects.toThrow('aborted by the test');
    expect(await erasedAtOf(id)).toBeNull();
    expect(await rows.readBatches()).toEqual([]);
    expect(await run()).toMatchObject({ marked: 1 });
  });
});
