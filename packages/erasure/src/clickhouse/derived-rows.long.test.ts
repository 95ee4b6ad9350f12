import { until } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { DERIVED_TABLES } from '../stores/derived.ts';
import { type ClickHouseHarness, openClickHouseHarness } from '../test/open-rows.ts';
import { AFTER, BEFORE, createRowsOf, newBatch, newEnvironment, newKey, sweepAll, T } from '../test/people.ts';
import { openErasureRows } from './erasure-rows.ts';

const DAY_MS = 86_400_000;
const TABLES = DERIVED_TABLES.map(({ name }) => name);

describe('derived rows in ClickHouse', () => {
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
  /** Derived rows of an environment: days and names; first and last seen, page and traits. */
  const derivedOf = async (environmentId: string) => {
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
  /** Events of a person before and after the cut-off, also on its day. */
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
    await at(AFTER + DAY_MS, 'later', 'returned');
  };

  /** Sweeps a person with later events. Returns the batch and the derived rows. */
  const eraseReturningPerson = async () => {
    const environmentId = newEnvironment();
    const key = newKey();
    await playBothSides(environmentId, key);
    const batch = await target(environmentId, key);
    await sweepAll(harness.rows, batch);
    return { environmentId, batch, whole: await derivedOf(environmentId) };
  };
  const deletesOf = async (...tables: readonly string[]) =>
    Number(
      await harness.query(`SELECT count() FROM system.mutations WHERE database = currentDatabase() AND NOT is_done
        AND table IN (${tables.map((name) => `'${name}'`).join(', ')})`),
    );
  /** Blocks deletes of these tables during the work: threads of merges run them. */
  const holdDeletes = async (tables: readonly string[], work: () => Promise<void>) => {
    for (const name of tables) await harness.query(`SYSTEM STOP MERGES ${name}`);
    try {
      await work();
    } finally {
      for (const name of tables) await harness.query(`SYSTEM START MERGES ${name}`);
    }
  };

  it('a sweep replaces the derived rows of a person by those of later events, and keeps the rows of others', async () => {
    const [environmentId, alone] = [newEnvironment(), newEnvironment()];
    const [key, other] = [newKey(), newKey()];
    await playBothSides(environmentId, key);
    await playBothSides(environmentId, other);
    await playBothSides(alone, other);
    const before = await derivedOf(environmentId);
    expect(before.days).toHaveLength(8);
    const kept = await derivedOf(alone);
    const batch = await target(environmentId, key);
    await sweepAll(harness.rows, batch);
    const after = await derivedOf(environmentId);
    const name = key.toString('hex');
    expect(after.days.filter((row) => row.includes(name)).map((row) => JSON.parse(row))).toEqual([
      [name, '2026-06-15', 'played'],
      [name, '2026-06-16', 'returned'],
    ]);
    expect(after.seen.filter((row) => row.includes(name)).map((row) => JSON.parse(row))).toEqual([
      [name, String(AFTER), String(AFTER + DAY_MS), 'https://game.example/after', '{"from":"later"}'],
    ]);
    const ofOther = (rows: typeof after) => [...rows.days, ...rows.seen].filter((row) => !row.includes(name));
    expect(ofOther(after)).toEqual(ofOther(before));
    expect(await derivedOf(alone)).toEqual(kept);
    expect(await harness.rows.findSurvivors(batch)).toEqual([]);
  });

  it('derived rows without events are survivors, and the next sweep removes them', async () => {
    const environmentId = newEnvironment();
    const [key, other] = [newKey(), newKey()];
    for (const each of [key, other]) await playBothSides(environmentId, each);
    const batch = await target(environmentId, key);
    await harness.query(`DELETE FROM events WHERE environment_id = '${environmentId}' AND event_time < '2026-06-15'`);
    expect(await harness.rows.findSurvivors(batch)).toEqual([
      { table: 'identity_days', column: 'identity_key', as: 'own', environmentId, key, rows: 2 },
      // The stored row and the derived one.
      { table: 'identities', column: 'identity_key', as: 'own', environmentId, key, rows: 2 },
    ]);
    await harness.rows.sweep(batch);
    expect(await harness.rows.findSurvivors(batch)).toEqual([]);
  });

  it('the next sweep derives rows again if an eraser died after the delete', async () => {
    const { environmentId, batch, whole } = await eraseReturningPerson();
    for (const table of TABLES) await harness.query(`DELETE FROM ${table} WHERE environment_id = '${environmentId}'`);
    expect((await derivedOf(environmentId)).days).toEqual([]);
    await harness.rows.sweep(batch);
    expect(await derivedOf(environmentId)).toEqual(whole);
  });

  it('deleted derived rows are found in files until the removal, which also reloads the dictionary of persons', async () => {
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

  it('an alias has no derived rows', async () => {
    const environmentId = newEnvironment();
    const [owner, side] = [newKey(), newKey()];
    const { event } = createRowsOf(environmentId);
    const alias = { name: 'alias', type: 'alias', event_name: '', identity_key: owner, from_key: side };
    await harness.add('events', event(alias));
    expect(await derivedOf(environmentId)).toEqual({ days: [], seen: [] });
    const batch = await target(environmentId, side);
    await sweepAll(harness.rows, batch);
    expect(await harness.read('events', environmentId, ['trace_id'])).toEqual([]);
  });

  it('a sweep that is aborted after the delete still derives the rows again', async () => {
    const { environmentId, batch, whole } = await eraseReturningPerson();
    for (const table of TABLES) {
      const stop = new AbortController();
      let sweep: Promise<unknown> = Promise.resolve();
      await holdDeletes([table], async () => {
        sweep = harness.rows.sweep(batch, stop.signal);
        await until('the delete is submitted', async () => (await deletesOf(table)) === 1);
        stop.abort(new Error('enough'));
      });
      await sweep;
      expect(await derivedOf(environmentId)).toEqual(whole);
    }
  });

  it('a sweep derives the rows again when a delete exceeds its deadline', async () => {
    const { environmentId, batch, whole } = await eraseReturningPerson();
    const impatient = openErasureRows({ ...harness.target, mutationDeadlineMs: 1 });
    onTestFinished(() => impatient.close());
    await holdDeletes(TABLES, () =>
      expect(impatient.sweep(batch)).rejects.toMatchObject({ kind: 'passing', code: 'MUTATION_WAIT' }),
    );
    await until('the delete has ended', async () => (await deletesOf(...TABLES)) === 0);
    expect(await derivedOf(environmentId)).toEqual(whole);
  });

  it('a sweep derives the rows again when another eraser drops the targets after the delete', async () => {
    const { environmentId, batch, whole } = await eraseReturningPerson();
    const listed = async () => (await harness.rows.readBatches()).map((each) => each.toString('hex')).toSorted();
    const others = (await listed()).filter((each) => each !== batch.toString('hex'));
    const mark = `insert-${newKey().toString('hex')}`;
    const isMarked = `current_database = currentDatabase() AND position(query, '${mark}') > 0 AND query_kind = 'Insert'`;
    let [sweep, insert]: Promise<unknown>[] = [];
    await holdDeletes(TABLES, async () => {
      sweep = expect(harness.rows.sweep(batch)).rejects.toMatchObject({ code: 'NO_TARGETS' });
      await until('the delete is submitted', async () => (await deletesOf(...TABLES)) === 1);
      // The sweep waits for this insert between its two steps.
      insert = expect(
        harness.query(`INSERT INTO events (environment_id, event_name, trace_id)
          SELECT '${environmentId}-2', 'level_start', '${mark}' FROM numbers(100) WHERE sleepEachRow(0.6) = 0
          SETTINGS max_block_size = 1`),
      ).rejects.toThrow();
      const running = `SELECT count() FROM system.processes WHERE ${isMarked}`;
      await until('the insert runs', async () => (await harness.query(running)) === '1');
    });
    await until('all derived rows are deleted', async () => {
      const { days, seen } = await derivedOf(environmentId);
      return days.length + seen.length === 0;
    });
    await harness.rows.dropTargets(batch);
    await harness.query(`KILL QUERY WHERE ${isMarked} SYNC`);
    await Promise.all([insert, sweep]);
    expect(await derivedOf(environmentId)).toEqual(whole);
    expect(await listed()).toEqual(others);
  });
});
