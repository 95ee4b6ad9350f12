import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ErasureTarget } from '../rows.ts';
import { ERASED_TABLES } from '../stores/tables.ts';
import type { ClickHouseHarness } from '../test/open-rows.ts';
import { AFTER, createRowsOf, newBatch, newEnvironment, newKey, sweepAll, T } from '../test/people.ts';
import {
  beginErasure,
  createReceiptOf,
  EMPTY_PEOPLE,
  type ErasedPerson,
  openClickHouseUpkeep,
  openMemoryUpkeep,
  putErased,
  type UpkeepHarness,
} from '../test/upkeep.ts';
import { removeFromDisk, scrub } from './scrub.ts';

const NOW = T + 24 * 3_600_000;
const wallClockMs = () => NOW;

async function openQuickClickHouse(): Promise<UpkeepHarness & { harness: ClickHouseHarness }> {
  const upkeep = await openClickHouseUpkeep();
  // Replaced files are removed after a second.
  const quick = `old_parts_lifetime = 1, cleanup_delay_period = 1, max_cleanup_delay_period = 1,
    cleanup_delay_period_random_add = 0`;
  for (const table of [...ERASED_TABLES.map(({ name }) => name), 'erasure_targets', 'erasure_found']) {
    await upkeep.harness.query(`ALTER TABLE ${table} MODIFY SETTING ${quick}`);
    // Attaching restarts the thread that removes them, which sleeps for half a minute.
    await upkeep.harness.query(`DETACH TABLE ${table} SYNC`);
    await upkeep.harness.query(`ATTACH TABLE ${table}`);
  }
  return upkeep;
}

const STORES = [
  ['memory', openMemoryUpkeep],
  ['clickhouse', openQuickClickHouse],
] as const;

describe.each(STORES)('removeFromDisk in %s', (_name, open: () => Promise<UpkeepHarness>) => {
  let upkeep: UpkeepHarness;
  beforeAll(async () => {
    upkeep = await open();
  });
  afterAll(() => upkeep.close());

  const run = (over: Partial<Parameters<typeof removeFromDisk>[0]> = {}) => {
    const { harness, records } = upkeep;
    const pause = async () => void (await delay(500));
    return removeFromDisk({ rows: harness.rows, records, wallClockMs, pause, ...over });
  };
  const addEvent = (environmentId: string, key: Buffer, over = {}) =>
    upkeep.harness.add('events', createRowsOf(environmentId).event({ name: 'row', identity_key: key, ...over }));
  const sweep = async (...targets: ErasureTarget[]) => {
    const batch = newBatch();
    await upkeep.harness.rows.putTargets(batch, targets);
    await sweepAll(upkeep.harness.rows, batch);
    return batch;
  };
  const physicalOf = async (id: Buffer) => (await upkeep.records.readReceipt(id))!.physicallyErasedAt;
  /** A person with swept rows and a receipt. */
  const erase = async (over: Partial<ErasedPerson> = {}) => {
    const person = { environmentId: newEnvironment(), keys: [newKey(), newKey()], ...over };
    const { environmentId, keys } = person;
    for (const key of keys) await addEvent(environmentId, key);
    const batch = await sweep(...keys.map((key) => ({ environmentId, key, cutoffMs: T })));
    return { ...person, batch, id: await putErased(upkeep.records, person) };
  };

  it('a receipt is marked once, when no file contains a row, and keeps its other fields', async () => {
    const { id, batch } = await erase();
    const { rows } = upkeep.harness;
    expect(await rows.findOnDisk(batch)).not.toEqual([]);
    const before = await upkeep.records.readReceipt(id);
    const waits: number[] = [];
    const { marked, deferred, foundOnDisk } = await run({ onReplaced: (files) => void waits.push(files) });
    expect({ marked, deferred, foundOnDisk }).toEqual({ marked: 1, deferred: 0, foundOnDisk: [] });
    expect(await rows.findOnDisk(batch)).toEqual([]);
    expect(await upkeep.records.readReceipt(id)).toEqual({ ...before, physicallyErasedAt: NOW });
    await rows.dropTargets(batch);
    expect(await rows.readBatches()).toEqual([]);
    expect(await run({ wallClockMs: () => NOW + 1 })).toMatchObject({ marked: 0, deferred: 0 });
    expect(await physicalOf(id)).toBe(NOW);
  });

  it('the removal waits for replaced files, and fails without marking if they remain', async () => {
    const { id, batch } = await erase();
    await upkeep.harness.rows.dropTargets(batch);
    const { rows } = upkeep.harness;
    let left = 3;
    const waits: number[] = [];
    const stuck = { ...rows, countReplaced: async () => 2 };
    await expect(run({ rows: stuck, pause: async () => {} })).rejects.toMatchObject({ code: 'REPLACED' });
    expect(await physicalOf(id)).toBeNull();
    expect(await rows.readBatches()).toEqual([]);
    const going = {
      ...rows,
      countReplaced: async (untilMs: number) => (left-- > 0 ? 7 : rows.countReplaced(untilMs)),
    };
    await run({ rows: going, onReplaced: (files) => void waits.push(files) });
    expect(waits.slice(0, 3)).toEqual([7, 7, 7]);
    expect(await physicalOf(id)).toBe(NOW);
  });

  it('no receipt is marked while any file contains a row, until a scrub', async () => {
    const [one, other] = [await erase(), await erase()];
    for (const { batch } of [one, other]) await upkeep.harness.rows.dropTargets(batch);
    await addEvent(one.environmentId, one.keys[0]!);
    const survivor = { table: 'events', column: 'identity_key', as: 'own', environmentId: one.environmentId, rows: 1 };
    const reported: unknown[] = [];
    const removal = await run({ onFoundOnDisk: (found) => void reported.push(found) });
    expect(removal).toMatchObject({ marked: 0, foundOnDisk: [survivor] });
    expect(reported).toEqual([[survivor]]);
    expect([await physicalOf(one.id), await physicalOf(other.id)]).toEqual([null, null]);
    await scrub({ rows: upkeep.harness.rows, records: upkeep.records, people: EMPTY_PEOPLE, wallClockMs });
    expect(await run()).toMatchObject({ marked: 2, foundOnDisk: [] });
  });

  it('the removal ignores erasures that finish while it runs', async () => {
    const early = await erase();
    const { rows } = upkeep.harness;
    let late: Awaited<ReturnType<typeof erase>> | undefined;
    const removeDeleted = async () => {
      const removedAtMs = await rows.removeDeleted();
      late = await erase();
      return removedAtMs;
    };
    expect(await run({ rows: { ...rows, removeDeleted } })).toMatchObject({ marked: 1, foundOnDisk: [] });
    expect(await physicalOf(early.id)).toBe(NOW);
    expect(await physicalOf(late!.id)).toBeNull();
    for (const { batch } of [early, late!]) await rows.dropTargets(batch);
    expect(await run()).toMatchObject({ marked: 1 });
  });

  it('a receipt is deferred while its identities are being erased again', async () => {
    const [kept, taken] = [newKey(), newKey()];
    // Only the fence shows the second key.
    const { id, batch, environmentId } = await erase({ keys: [kept, taken], requested: [kept] });
    await upkeep.harness.rows.dropTargets(batch);
    const again = { environmentId, keys: [taken], cutoffMs: AFTER };
    const second = await beginErasure(upkeep.records, again);
    const elsewhere = await erase();
    await upkeep.harness.rows.dropTargets(elsewhere.batch);
    // As after a merge of the two fences of one identity.
    const readFences: typeof upkeep.records.readFences = async function* (reading) {
      for await (const fence of upkeep.records.readFences(reading))
        if (!(fence.key.equals(taken) && fence.erasureId.equals(id))) yield fence;
    };
    const records = { ...upkeep.records, readFences };
    expect(await run({ records })).toMatchObject({ marked: 1, deferred: 1 });
    expect([await physicalOf(id), await physicalOf(elsewhere.id)]).toEqual([null, NOW]);
    await upkeep.records.putReceipts([createReceiptOf(second, again)]);
    expect(await run({ records })).toMatchObject({ marked: 2, deferred: 0 });
  });

  it('missing fences are a fault', async () => {
    const { id, batch } = await erase();
    await upkeep.harness.rows.dropTargets(batch);
    const records = { ...upkeep.records, readFences: async function* () {} };
    await expect(run({ records })).rejects.toMatchObject({ code: 'NO_TARGETS' });
    expect(await physicalOf(id)).toBeNull();
    expect(await run()).toMatchObject({ marked: 1 });
  });

  it('an aborted removal marks nothing, leaves no targets, and may be repeated', async () => {
    const { id, batch } = await erase();
    const { rows } = upkeep.harness;
    await rows.dropTargets(batch);
    const stop = new AbortController();
    const pause = async () => stop.abort(new Error('enough'));
    const running = run({ rows: { ...rows, countReplaced: async () => 1 }, pause, signal: stop.signal });
    await expect(running).rejects.toThrow('enough');
    expect(await physicalOf(id)).toBeNull();
    expect(await rows.readBatches()).toEqual([]);
    expect(await run()).toMatchObject({ marked: 1 });
  });
});
