import { until } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ErasureTarget } from '../rows.ts';
import type { ClickHouseHarness } from '../test/open-rows.ts';
import { AFTER, BEFORE, createRowsOf, newBatch, newEnvironment, newKey, sweepAll, T } from '../test/people.ts';
import {
  beginErasure,
  EMPTY_PEOPLE,
  openClickHouseUpkeep,
  openMemoryUpkeep,
  putErased,
  type UpkeepHarness,
} from '../test/upkeep.ts';
import { dropStaleBatches, searchTimeOf } from './batches.ts';
import type { Survivors } from './scrub.ts';
import { scrub } from './scrub.ts';

const NOW = T + 24 * 3_600_000;
const wallClockMs = () => NOW;

const STORES = [
  ['memory', openMemoryUpkeep],
  ['clickhouse', openClickHouseUpkeep],
] as const;

describe.each(STORES)('scrub in %s', (_name, open: () => Promise<UpkeepHarness>) => {
  let upkeep: UpkeepHarness;
  beforeAll(async () => {
    upkeep = await open();
  });
  afterAll(() => upkeep.close());

  const names = async (table: string, environmentId: string) => {
    const column = table === 'identity_overrides' ? 'kind' : 'trace_id';
    return (await upkeep.harness.read(table, environmentId, [column])).map(([name]) => name).sort();
  };
  const run = (over: Partial<Parameters<typeof scrub>[0]> = {}) => {
    const { harness, records } = upkeep;
    return scrub({ rows: harness.rows, records, people: EMPTY_PEOPLE, wallClockMs, ...over });
  };

  it('a scrub deletes rows up to the cut-off from every table, and reports them without keys', async () => {
    const environmentId = newEnvironment();
    const [erased, other] = [newKey(), newKey()];
    await putErased(upkeep.records, { environmentId, keys: [erased] });
    const { event, link, override, consent } = createRowsOf(environmentId);
    const { add } = upkeep.harness;
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
    expect(await upkeep.harness.read('events', environmentId, ['anonymous_id'])).toEqual([[''], [''], ['']]);
    const again = await run({ onSurvivors: () => expect.unreachable('nothing remains') });
    expect(again).toMatchObject({ found: [], swept: [] });
    expect(await upkeep.harness.rows.readBatches()).toEqual([]);
  });

  it('rows of an unfinished erasure are no survivors', async () => {
    const environmentId = newEnvironment();
    const [fenced, returning] = [newKey(), newKey()];
    await beginErasure(upkeep.records, { environmentId, keys: [fenced] });
    // Erased before, and requested again with a later cut-off.
    await putErased(upkeep.records, { environmentId, keys: [returning] });
    await beginErasure(upkeep.records, { environmentId, keys: [returning], cutoffMs: AFTER });
    const { event } = createRowsOf(environmentId);
    await upkeep.harness.add('events', event({ name: 'first', identity_key: fenced }));
    const later = { identity_key: returning, event_time: AFTER, received_at: AFTER };
    await upkeep.harness.add('events', event({ name: 'second', ...later }));
    const { found, unfinished } = await run();
    expect(found).toEqual([]);
    expect(unfinished).toBeGreaterThanOrEqual(2);
    expect(await names('events', environmentId)).toEqual(['first', 'second']);
  });

  it('a scrub searches all fences in as many batches as needed', async () => {
    const environmentId = newEnvironment();
    const people = Array.from({ length: 7 }, newKey);
    for (const key of people) {
      await putErased(upkeep.records, { environmentId, keys: [key] });
      await upkeep.harness.add('events', createRowsOf(environmentId).event({ name: 'old', identity_key: key }));
    }
    let batches = 0;
    const { rows } = upkeep.harness;
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

  it('a failed or aborted scrub leaves no targets', async () => {
    const environmentId = newEnvironment();
    await putErased(upkeep.records, { environmentId, keys: [newKey()] });
    const { rows } = upkeep.harness;
    const findSurvivors = async () => {
      expect(await rows.readBatches()).toHaveLength(1);
      throw new Error('the store is away');
    };
    await expect(run({ rows: { ...rows, findSurvivors } })).rejects.toThrow('the store is away');
    expect(await rows.readBatches()).toEqual([]);
    const stop = new AbortController();
    const putTargets: typeof rows.putTargets = async (...all) => {
      await rows.putTargets(...all);
      stop.abort(new Error('enough'));
    };
    await expect(run({ rows: { ...rows, putTargets }, signal: stop.signal })).rejects.toThrow('enough');
    expect(await rows.readBatches()).toEqual([]);
  });

  it('a scrub fails when rows arrive as fast as they are swept', async () => {
    const environmentId = newEnvironment();
    const key = newKey();
    await putErased(upkeep.records, { environmentId, keys: [key] });
    const { rows, add } = upkeep.harness;
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

  it('a scrub first drops stale searches, and keeps batches of erasers and running searches', async () => {
    const { rows } = upkeep.harness;
    const target = { environmentId: newEnvironment(), key: newKey(), cutoffMs: T };
    const leave = async (startedAtMs: number) => {
      let batch: Buffer = newBatch();
      const putTargets = async (id: Buffer) => {
        batch = id;
        await rows.putTargets(id, [target]);
      };
      await putErased(upkeep.records, { environmentId: target.environmentId, keys: [newKey()] });
      const dropTargets = async () => {};
      await run({ rows: { ...rows, putTargets, dropTargets }, wallClockMs: () => startedAtMs });
      return batch.toString('hex');
    };
    const eraser = newBatch();
    await rows.putTargets(eraser, [target]);
    const killed = await leave(NOW - 7 * 3_600_000);
    const running = await leave(NOW - 5 * 3_600_000);
    const left = async () => (await rows.readBatches()).map((id) => id.toString('hex'));
    expect(await left()).toEqual(expect.arrayContaining([killed, running, eraser.toString('hex')]));
    await run();
    expect((await left()).sort()).toEqual([running, eraser.toString('hex')].sort());
    for (const id of await left()) await rows.dropTargets(Buffer.from(id, 'hex'));
  });

  it('batches of erasers without progress are dropped', async () => {
    const { rows } = upkeep.harness;
    const target = { environmentId: newEnvironment(), key: newKey(), cutoffMs: T };
    const [dead, alive, ending] = [newBatch(), newBatch(), newBatch()];
    for (const batch of [dead, alive, ending]) await rows.putTargets(batch, [target]);
    const readWorkedOn = async () => {
      await rows.dropTargets(ending);
      return new Set([alive.toString('hex')]);
    };
    expect(await dropStaleBatches({ rows, wallClockMs })).toBe(0);
    expect(await dropStaleBatches({ rows, wallClockMs, readWorkedOn })).toBe(2);
    expect(await rows.readBatches()).toEqual([alive]);
    await rows.dropTargets(alive);
  });
});

describe('scrub in ClickHouse', () => {
  let upkeep: UpkeepHarness & { harness: ClickHouseHarness };
  beforeAll(async () => {
    upkeep = await openClickHouseUpkeep();
  });
  afterAll(() => upkeep.close());

  it('two concurrent scrubs beside an erasure delete all rows, and none of others', async () => {
    const environmentId = newEnvironment();
    const [erased, unfinished, bystander] = [newKey(), newKey(), newKey()];
    const { event } = createRowsOf(environmentId);
    const { harness, records } = upkeep;
    await putErased(records, { environmentId, keys: [erased] });
    for (let row = 0; row < 5; row++)
      for (const key of [erased, unfinished, bystander])
        await harness.add('events', event({ name: key.toString('hex'), identity_key: key }));
    const batch = newBatch();
    await harness.rows.putTargets(batch, [{ environmentId, key: unfinished, cutoffMs: T }]);
    const options = { rows: harness.rows, records, people: EMPTY_PEOPLE, wallClockMs };
    await Promise.all([scrub(options), scrub(options), sweepAll(harness.rows, batch)]);
    const names = (await harness.read('events', environmentId, ['trace_id'])).map(([name]) => name);
    expect(names).toEqual(Array.from({ length: 5 }, () => bystander.toString('hex')));
    expect(await harness.rows.findSurvivors(batch)).toEqual([]);
    await harness.rows.dropTargets(batch);
    expect(await harness.rows.readBatches()).toEqual([]);
  });

  it('a scrub aborted during a mutation keeps its targets until they are stale', async () => {
    const environmentId = newEnvironment();
    const { harness, records } = upkeep;
    const key = newKey();
    await putErased(records, { environmentId, keys: [key] });
    await harness.add('events', createRowsOf(environmentId).event({ name: 'old', identity_key: key }));
    const left = () => harness.read('events', environmentId, ['trace_id']);
    const { rows } = harness;
    const stop = new AbortController();
    // Threads of merges run mutations.
    await harness.query('SYSTEM STOP MERGES events');
    try {
      const over = expect(
        scrub({ rows, records, people: EMPTY_PEOPLE, wallClockMs, signal: stop.signal }),
      ).rejects.toThrow('enough');
      const mutations = 'system.mutations WHERE database = currentDatabase() AND NOT is_done';
      await until(
        'the mutation is running',
        async () => (await harness.query(`SELECT count() FROM ${mutations}`)) === '1',
      );
      stop.abort(new Error('enough'));
      await over;
      expect(await left()).toEqual([['old']]);
    } finally {
      await harness.query('SYSTEM START MERGES events');
    }
    await until('the mutation has ended', async () => (await left()).length === 0);
    expect(await dropStaleBatches({ rows, wallClockMs })).toBe(0);
    expect(await dropStaleBatches({ rows, wallClockMs: () => NOW + 7 * 3_600_000 })).toBe(1);
  });
});
