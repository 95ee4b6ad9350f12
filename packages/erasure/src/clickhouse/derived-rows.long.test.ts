import { until } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { DERIVED_TABLES } from '../stores/derived.ts';
import { type ClickHouseHarness, openClickHouseHarness } from '../test/open-rows.ts';
import { AFTER, BEFORE, createRowsOf, newBatch, newEnvironment, newKey, sweepAll, T } from '../test/people.ts';
import { openErasureRows } from './erasure-rows.ts';

const DAY_MS = 86_400_000;
const TABLES = DERIVED_TABLES.map(({ name }) => name);

describe('what follows from the events of erased people', () => {
  let harness: ClickHouseHarness;
  beforeAll(async () => {
    harness = await openClickHouseHarness({ mutationDeadlineMs: 60_000 });
  });
  afterAll(() => harness.close());

  const target = async (environmentId: string, key: Buffer) => {
    const batch = newBatch();
    await harness.rows.putTargets(batch, [{ environmentId, key, cutoffMs: T }]);
    return batch;
  };
  /** Days and names, then first and last seen, page and traits of everybody in an environment. */
  const toldOf = async (environmentId: string) => {
    const of = `WHERE environment_id = '${environmentId}'`;
    const days = await harness.query(
      `SELECT lower(hex(identity_key)), day, event_name FROM identity_days FINAL ${of} ORDER BY ALL FORMAT JSONCompactEachRow`,
    );
    const seen = await harness.query(
      `SELECT lower(hex(identity_key)), toUnixTimestamp64Milli(min(first_seen_at)), toUnixTimestamp64Milli(max(last_seen_at)),
         argMinMerge(first_touch).page_url, argMaxIfMerge(latest_traits)
       FROM identities ${of} GROUP BY identity_key ORDER BY ALL FORMAT JSONCompactEachRow`,
    );
    return { days: days.split('\n').filter(Boolean), seen: seen.split('\n').filter(Boolean) };
  };
  /** Somebody who was erased and came back: events on the day of the cut-off on both sides of it, and on others. */
  const playBothSides = async (environmentId: string, key: Buffer) => {
    const { event } = createRowsOf(environmentId);
    const at = (ms: number, page: string, event_name = 'played') =>
      harness.add(
        'events',
        event({
          name: page,
          event_name,
          identity_key: key,
          event_time: ms,
          received_at: ms,
          type: 'identify',
          page_url: `https://game.example/${page}`,
          traits: `{"from":"${page}"}`,
        }),
      );
    await at(BEFORE - 40 * DAY_MS, 'old');
    await at(BEFORE, 'before');
    await at(AFTER, 'after');
    await at(AFTER + DAY_MS, 'later', 'came_back');
  };

  /** Somebody who came back, whose batch is swept and keeps its list; and all that is told of them since. */
  const eraseWhoCameBack = async () => {
    const environmentId = newEnvironment();
    const key = newKey();
    await playBothSides(environmentId, key);
    const batch = await target(environmentId, key);
    await sweepAll(harness.rows, batch);
    return { environmentId, batch, whole: await toldOf(environmentId) };
  };
  const deletesOf = async (...tables: readonly string[]) =>
    Number(
      await harness.query(`SELECT count() FROM system.mutations WHERE database = currentDatabase() AND NOT is_done
        AND table IN (${tables.map((name) => `'${name}'`).join(', ')})`),
    );
  /** Deletes of these tables do not run until the work has ended: they are made by the merges' threads. */
  const holdDeletes = async (tables: readonly string[], work: () => Promise<void>) => {
    for (const name of tables) await harness.query(`SYSTEM STOP MERGES ${name}`);
    try {
      await work();
    } finally {
      for (const name of tables) await harness.query(`SYSTEM START MERGES ${name}`);
    }
  };

  it('falls with them, and says of who came back what the events behind the cut-off say; others keep all', async () => {
    const [environmentId, alone] = [newEnvironment(), newEnvironment()];
    const [key, other] = [newKey(), newKey()];
    await playBothSides(environmentId, key);
    await playBothSides(environmentId, other);
    await playBothSides(alone, other);
    const before = await toldOf(environmentId);
    expect(before.days).toHaveLength(8);
    const kept = await toldOf(alone);
    const batch = await target(environmentId, key);
    await sweepAll(harness.rows, batch);
    const after = await toldOf(environmentId);
    const name = key.toString('hex');
    expect(after.days.filter((row) => row.includes(name)).map((row) => JSON.parse(row))).toEqual([
      [name, '2026-06-15', 'played'],
      [name, '2026-06-16', 'came_back'],
    ]);
    expect(after.seen.filter((row) => row.includes(name)).map((row) => JSON.parse(row))).toEqual([
      [name, String(AFTER), String(AFTER + DAY_MS), 'https://game.example/after', '{"from":"later"}'],
    ]);
    const ofOther = (told: typeof after) => [...told.days, ...told.seen].filter((row) => !row.includes(name));
    expect(ofOther(after)).toEqual(ofOther(before));
    expect(await toldOf(alone)).toEqual(kept);
    expect(await harness.rows.findSurvivors(batch)).toEqual([]);
  });

  it('is told of as left where no event says it any more', async () => {
    const environmentId = newEnvironment();
    const [key, other] = [newKey(), newKey()];
    for (const each of [key, other]) await playBothSides(environmentId, each);
    const batch = await target(environmentId, key);
    await harness.query(`DELETE FROM events WHERE environment_id = '${environmentId}' AND event_time < '2026-06-15'`);
    expect(await harness.rows.findSurvivors(batch)).toEqual([
      { table: 'identity_days', column: 'identity_key', as: 'own', environmentId, key, rows: 2 },
      // As the table has them, and as events say them.
      { table: 'identities', column: 'identity_key', as: 'own', environmentId, key, rows: 2 },
    ]);
    await harness.rows.sweep(batch);
    expect(await harness.rows.findSurvivors(batch)).toEqual([]);
  });

  it('is derived again by the next sweep when an eraser died behind the delete', async () => {
    const { environmentId, batch, whole } = await eraseWhoCameBack();
    for (const table of TABLES) await harness.query(`DELETE FROM ${table} WHERE environment_id = '${environmentId}'`);
    expect((await toldOf(environmentId)).days).toEqual([]);
    await harness.rows.sweep(batch);
    expect(await toldOf(environmentId)).toEqual(whole);
  });

  it('is found in files until deleted rows are removed from them, and the dictionary of persons has nobody of them', async () => {
    const environmentId = newEnvironment();
    const key = newKey();
    await playBothSides(environmentId, key);
    await harness.add('identity_overrides', createRowsOf(environmentId).override({ name: 'one', identity_key: key }));
    const inMemory = () =>
      harness.query(
        `SELECT toUInt8(dictHas('identity_persons', reinterpretAsUInt64(unhex('${key.toString('hex')}'))))`,
      );
    await harness.query('SYSTEM RELOAD DICTIONARY identity_persons');
    expect(await inMemory()).toBe('1');
    const batch = await target(environmentId, key);
    await sweepAll(harness.rows, batch);
    const tables = async () => (await harness.rows.findOnDisk(batch)).map(({ table }) => table);
    expect(await tables()).toEqual(['events', 'identity_overrides']);
    for (const table of ['events', 'identity_overrides'])
      await harness.query(`ALTER TABLE ${table} APPLY DELETED MASK SETTINGS mutations_sync = 2`);
    expect(await tables()).toEqual(['identity_days', 'identities']);
    await harness.rows.removeDeleted();
    expect(await tables()).toEqual([]);
    expect(await inMemory()).toBe('0');
  });

  it('has no row of an alias, so that what its owner did stays as it was when one of its sides is erased', async () => {
    const environmentId = newEnvironment();
    const [owner, side] = [newKey(), newKey()];
    const { event } = createRowsOf(environmentId);
    const alias = { name: 'alias', type: 'alias', event_name: '', identity_key: owner, from_key: side };
    await harness.add('events', event(alias));
    expect(await toldOf(environmentId)).toEqual({ days: [], seen: [] });
    const batch = await target(environmentId, side);
    await sweepAll(harness.rows, batch);
    expect(await harness.read('events', environmentId, ['trace_id'])).toEqual([]);
  });

  it('is derived again when the sweep is told to stop behind the delete', async () => {
    const { environmentId, batch, whole } = await eraseWhoCameBack();
    for (const table of TABLES) {
      const stop = new AbortController();
      let sweep: Promise<unknown> = Promise.resolve();
      await holdDeletes([table], async () => {
        sweep = harness.rows.sweep(batch, stop.signal);
        await until('the delete is asked for', async () => (await deletesOf(table)) === 1);
        stop.abort(new Error('enough'));
      });
      await sweep;
      expect(await toldOf(environmentId)).toEqual(whole);
    }
  });

  it('is derived again when a delete takes too long and ends afterwards', async () => {
    const { environmentId, batch, whole } = await eraseWhoCameBack();
    const impatient = openErasureRows({ ...harness.target, mutationDeadlineMs: 1 });
    onTestFinished(() => impatient.close());
    await holdDeletes(TABLES, () =>
      expect(impatient.sweep(batch)).rejects.toMatchObject({ kind: 'passing', code: 'MUTATION_WAIT' }),
    );
    await until('the delete has ended', async () => (await deletesOf(...TABLES)) === 0);
    expect(await toldOf(environmentId)).toEqual(whole);
  });

  it('is derived again when another eraser finishes the batch behind the delete and drops its list', async () => {
    const { environmentId, batch, whole } = await eraseWhoCameBack();
    const listed = async () => (await harness.rows.readBatches()).map((each) => each.toString('hex')).toSorted();
    const others = (await listed()).filter((each) => each !== batch.toString('hex'));
    const mark = `insert-${newKey().toString('hex')}`;
    const isOurs = `current_database = currentDatabase() AND position(query, '${mark}') > 0 AND query_kind = 'Insert'`;
    let [sweep, insert]: Promise<unknown>[] = [];
    await holdDeletes(TABLES, async () => {
      sweep = expect(harness.rows.sweep(batch)).rejects.toMatchObject({ code: 'NO_TARGETS' });
      await until('the delete is asked for', async () => (await deletesOf(...TABLES)) === 1);
      // The sweep waits for this insert between its two steps.
      insert = expect(
        harness.query(`INSERT INTO events (environment_id, event_name, trace_id)
          SELECT '${environmentId}-2', 'level_start', '${mark}' FROM numbers(100) WHERE sleepEachRow(0.6) = 0
          SETTINGS max_block_size = 1`),
      ).rejects.toThrow();
      const running = `SELECT count() FROM system.processes WHERE ${isOurs}`;
      await until('the insert runs', async () => (await harness.query(running)) === '1');
    });
    await until('all of it is deleted', async () => {
      const { days, seen } = await toldOf(environmentId);
      return days.length + seen.length === 0;
    });
    await harness.rows.dropTargets(batch);
    await harness.query(`KILL QUERY WHERE ${isOurs} SYNC`);
    await Promise.all([insert, sweep]);
    expect(await toldOf(environmentId)).toEqual(whole);
    expect(await listed()).toEqual(others);
  });
});
