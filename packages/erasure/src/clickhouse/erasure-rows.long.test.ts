import { StoreFault } from '@playline/stores';
import { until } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SWEPT_TABLES } from '../stores/tables.ts';
import { type ClickHouseHarness, openClickHouseHarness } from '../test/open-rows.ts';
import { createRowsOf, newBatch, newEnvironment, newKey, sweepAll, T } from '../test/people.ts';
import { openErasureRows } from './erasure-rows.ts';
import { createPredicates, toIdText } from './predicates.ts';

/** In a SELECT a plain number would be seconds. */
const AT_T = `fromUnixTimestamp64Milli(${T}, 'UTC')`;

describe('the rows of people in ClickHouse', () => {
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
  const unfinished = () =>
    harness.query('SELECT count() FROM system.mutations WHERE database = currentDatabase() AND NOT is_done');

  it('keep the version of a row whose carried id is blanked, so that the copy received first stays the one', async () => {
    const environmentId = newEnvironment();
    const device = newKey();
    const row = { name: 'shared', identity_key: newKey(), anonymous_key: device, anonymous_id: 'd', kafka_offset: 77 };
    await harness.add('events', createRowsOf(environmentId).event(row));
    const versions = () =>
      harness.query(`SELECT version, kafka_offset FROM events WHERE environment_id = '${environmentId}'`);
    const before = await versions();
    await sweepAll(harness.rows, await target(environmentId, device));
    expect(await harness.read('events', environmentId, ['anonymous_id'])).toEqual([['']]);
    expect(await versions()).toBe(before);
    expect(before).toMatch(/^\d+\t77$/);
  });

  it('are found by their owner as before when an id that they carried was blanked', async () => {
    const environmentId = newEnvironment();
    const [device, user] = [newKey(), newKey()];
    const row = { identity_key: user, anonymous_key: device, anonymous_id: 'd' };
    for (const name of ['one', 'two']) await harness.add('events', createRowsOf(environmentId).event({ name, ...row }));
    await sweepAll(harness.rows, await target(environmentId, device));
    const batch = await target(environmentId, user);
    expect(await sweepAll(harness.rows, batch)).toMatchObject([{ column: 'identity_key', rows: 2 }]);
    expect(await harness.read('events', environmentId, ['trace_id'])).toEqual([]);
  });

  it('are waited for while an insert that began before still runs, and not for one that began later', async () => {
    const environmentId = newEnvironment();
    const insertFor = (seconds: number, name: string) =>
      harness.query(`INSERT INTO events (environment_id, event_name, trace_id)
        SELECT '${environmentId}', 'level_start', 'insert-${name}' FROM numbers(10) WHERE sleepEachRow(${seconds / 10}) = 0`);
    const running = async (name: string) =>
      (await harness.query('SELECT query FROM system.processes')).includes(`insert-${name}`);
    const before = insertFor(1, 'before');
    await until('the insert runs', () => running('before'));
    const waiting = harness.rows.awaitInserts();
    // Asked behind it by the same client: it has had its list by then.
    for (let time = 0; time < 3; time++) await harness.rows.readBatches();
    const later = insertFor(3, 'later');
    await until('the other insert runs', () => running('later'));
    await waiting;
    expect([await running('before'), await running('later')]).toEqual([false, true]);
    const stop = new AbortController();
    const stopped = expect(harness.rows.awaitInserts(stop.signal)).rejects.toThrow('enough');
    stop.abort(new Error('enough'));
    await stopped;
    await Promise.all([before, later]);
  });

  it('are not found in any file in use, masked or not, once deleted ones are removed', async () => {
    const environmentId = newEnvironment();
    const key = newKey();
    const { event, link, override, consent } = createRowsOf(environmentId);
    await harness.add('events', event({ name: 'one', identity_key: key }));
    await harness.add('identity_links', link({ name: 'one', b_key: key }));
    await harness.add('identity_overrides', override({ name: 'one', identity_key: key }));
    await harness.add('consent_log', consent({ name: 'one', identity_key: key }));
    const batch = await target(environmentId, key);
    await sweepAll(harness.rows, batch);
    // By hand and not by the predicate under test.
    const onDisk = async () => {
      const look = (table: string, column: string) =>
        harness.query(`SELECT count() FROM ${table} WHERE ${column} = unhex('${key.toString('hex')}')
          SETTINGS apply_deleted_mask = 0, apply_patch_parts = 0`);
      const columns = SWEPT_TABLES.flatMap(({ name, clearing }) => clearing.own.map((own) => [name, own] as const));
      return (await Promise.all(columns.map(([table, column]) => look(table, column)))).map(Number);
    };
    expect((await onDisk()).reduce((sum, count) => sum + count)).toBe(4);
    const removedAtMs = await harness.rows.removeDeleted();
    expect((await onDisk()).every((count) => count === 0)).toBe(true);
    expect(await harness.rows.findOnDisk(batch)).toEqual([]);
    // The files from before stand a while longer, and that is told.
    expect(await harness.rows.countReplaced(removedAtMs)).toBeGreaterThan(0);
    expect(await harness.rows.countReplaced(0)).toBe(0);
  });

  it('leave no key in the list of mutations, in statements that were logged, nor in the table of targets', async () => {
    const environmentId = newEnvironment();
    const key = newKey();
    await harness.add('events', createRowsOf(environmentId).event({ name: 'one', identity_key: key }));
    const batch = await target(environmentId, key);
    await sweepAll(harness.rows, batch);
    await harness.rows.dropTargets(batch);
    await harness.query('SYSTEM FLUSH LOGS');
    const texts: string[] = [];
    for (const [column, table] of [
      ['command', 'system.mutations WHERE database = currentDatabase()'],
      [
        'query',
        "system.query_log WHERE current_database = currentDatabase() AND position(query, 'erasure_targets') > 0",
      ],
    ] as const)
      texts.push(...(await harness.query(`SELECT base64Encode(${column}) FROM ${table}`)).split('\n'));
    const said = texts.map((text) => Buffer.from(text, 'base64'));
    // The control: the batch is named in both.
    expect(said.filter((text) => text.includes(toIdText(batch))).length).toBeGreaterThan(5);
    for (const form of [key, key.toString('hex'), key.toString('hex').toUpperCase()])
      expect(said.filter((text) => text.includes(form))).toEqual([]);
    expect(await harness.query(`SELECT count() FROM erasure_targets WHERE batch_id = '${toIdText(batch)}'`)).toBe('0');
  });

  it('are a fault when a change of the table fails, leave nothing behind that fails on, and go with a repeat', async () => {
    const environmentId = newEnvironment();
    const key = newKey();
    await harness.add('events', createRowsOf(environmentId).event({ name: 'one', identity_key: key }));
    const batch = await target(environmentId, key);
    // Somebody's change that cannot be made: whatever comes behind it waits for it.
    const broken = `UPDATE trace_id = toString(throwIf(environment_id = '${environmentId}')) WHERE 1`;
    await harness.query(`ALTER TABLE events ${broken} SETTINGS mutations_sync = 0`);
    const fault = await harness.rows.sweep(batch).catch((error: unknown) => error);
    expect(fault).toBeInstanceOf(StoreFault);
    expect(fault).toMatchObject({ kind: 'passing', code: 'MUTATION_FAILED' });
    expect(await unfinished()).toBe('1');
    expect(await harness.rows.findSurvivors(batch)).toMatchObject([{ rows: 1 }]);
    await harness.query(`KILL MUTATION WHERE database = currentDatabase() AND position(command, 'throwIf') > 0 SYNC`);
    await sweepAll(harness.rows, batch);
    expect(await harness.rows.findSurvivors(batch)).toEqual([]);
    expect(await unfinished()).toBe('0');
  });

  it('are a fault when a change takes too long, and a repeat waits for that one before it makes its own', async () => {
    const environmentId = newEnvironment();
    const key = newKey();
    await harness.add('events', createRowsOf(environmentId).event({ name: 'one', identity_key: key }));
    const batch = await target(environmentId, key);
    const impatient = openErasureRows({ ...harness.target, mutationDeadlineMs: 1 });
    // Mutations are made by the merges' threads.
    await harness.query('SYSTEM STOP MERGES events');
    try {
      await expect(impatient.sweep(batch)).rejects.toMatchObject({ kind: 'passing', code: 'MUTATION_WAIT' });
      await expect(impatient.sweep(batch)).rejects.toMatchObject({ kind: 'passing', code: 'MUTATION_WAIT' });
      expect(await unfinished()).toBe('1');
    } finally {
      await harness.query('SYSTEM START MERGES events');
      await impatient.close();
    }
    await sweepAll(harness.rows, batch);
    expect(await harness.rows.findSurvivors(batch)).toEqual([]);
    expect(await unfinished()).toBe('0');
  });

  it('are not waited for behind the end of the signal: what is changed goes on, and a repeat waits for it', async () => {
    const environmentId = newEnvironment();
    const key = newKey();
    await harness.add('events', createRowsOf(environmentId).event({ name: 'one', identity_key: key }));
    const batch = await target(environmentId, key);
    const isStopped = async (work: (signal: AbortSignal) => Promise<unknown>) => {
      const stop = new AbortController();
      const over = expect(work(stop.signal)).rejects.toThrow('enough');
      await until('it is under way', async () => (await unfinished()) === '1');
      stop.abort(new Error('enough'));
      await over;
      expect(await unfinished()).toBe('1');
    };
    const { rows } = harness;
    for (const work of [(signal: AbortSignal) => rows.sweep(batch, signal), rows.removeDeleted]) {
      await harness.query('SYSTEM STOP MERGES events');
      try {
        await isStopped(work);
      } finally {
        await harness.query('SYSTEM START MERGES events');
      }
      await work(new AbortController().signal);
      expect(await unfinished()).toBe('0');
    }
    expect(await rows.findOnDisk(batch)).toEqual([]);
  });

  it('are never counted as none by a store that cannot count', async () => {
    const batch = await target(newEnvironment(), newKey());
    const away = openErasureRows({ url: 'http://127.0.0.1:1', user: 'nobody', password: '', database: 'none' });
    const elsewhere = openErasureRows({ ...harness.target, database: 'default' });
    try {
      for (const count of [() => away.findSurvivors(batch), () => away.findOnDisk(batch), () => away.countReplaced(T)])
        await expect(count()).rejects.toMatchObject({ name: 'StoreFault', kind: 'passing' });
      await expect(elsewhere.findSurvivors(batch)).rejects.toMatchObject({ name: 'StoreFault', kind: 'final' });
    } finally {
      await Promise.all([away.close(), elsewhere.close()]);
    }
  });

  it('are looked for where the filter or the sorting key says, not in the whole table', async () => {
    const environmentId = newEnvironment();
    const key = newKey();
    // One granule is 8,192 rows: ten of them, and the person in one.
    await harness.query(`INSERT INTO events (environment_id, event_name, event_time, received_at, identity_key, anonymous_key, message_id)
      SELECT '${environmentId}', 'a', ${AT_T}, ${AT_T}, unhex(lower(hex(MD5(toString(number))))),
        unhex(lower(hex(MD5(toString(-number))))), generateUUIDv4() FROM numbers(81920)`);
    await harness.add('events', createRowsOf(environmentId).event({ name: 'one', identity_key: key }));
    await harness.query('OPTIMIZE TABLE events FINAL');
    const { any, falls } = createPredicates(SWEPT_TABLES[0]!.clearing, await target(environmentId, key));
    for (const where of [any, falls('anonymous_key')]) {
      const plan = await harness.query(`EXPLAIN indexes = 1 SELECT count() FROM events WHERE ${where}`);
      const granules = Number(/ReadFromMergeTree \(\w+\.events\)[\s\S]*?Granules: (\d+)/.exec(plan)?.[1]);
      expect(granules).toBeLessThanOrEqual(2);
    }
  });

  it('are deleted by their place in a part that has deleted rows already, and no other row is', async () => {
    const environmentId = newEnvironment();
    const people = Array.from({ length: 50 }, newKey);
    // All in one part, so that offsets matter: twenty rows of each person, mixed.
    const keys = people.map((key) => `unhex('${key.toString('hex')}')`).join(', ');
    await harness.query(`INSERT INTO events (environment_id, event_name, event_time, received_at, message_id, identity_key)
      SELECT '${environmentId}', toString(number % 7), ${AT_T}, ${AT_T}, generateUUIDv4(), [${keys}][number % 50 + 1]
      FROM numbers(1000)`);
    const left = async () => {
      const owners = (await harness.read('events', environmentId, ['identity_key'])).map(([owner]) => owner!);
      return people.map((key) => owners.filter((owner) => owner === key.toString('hex')).length);
    };
    // The first sweep finds a part without deleted rows, the second and the third one with some.
    for (const [gone, key] of people.slice(0, 3).entries()) {
      await sweepAll(harness.rows, await target(environmentId, key));
      expect(await left()).toEqual(people.map((_, person) => (person <= gone ? 0 : 20)));
    }
  });

  it("are all deleted, and nobody else's, while blocks come in and parts are merged under the hands of the sweep", async () => {
    const environmentId = newEnvironment();
    const { event } = createRowsOf(environmentId);
    const [erased, bystander] = [newKey(), newKey()];
    for (let row = 0; row < 5; row++) {
      await harness.add('events', event({ name: 'erased', identity_key: erased }));
      await harness.add('events', event({ name: 'other', identity_key: bystander }));
    }
    let [done, more] = [false, 0];
    const disturb = async () => {
      for (; !done; more++) {
        await harness.add('events', event({ name: 'other', identity_key: bystander }));
        await harness.query('OPTIMIZE TABLE events FINAL');
      }
    };
    const disturbed = disturb();
    const batch = await target(environmentId, erased);
    try {
      // What a sweep misses since its part was merged is a survivor.
      await until('the rows are gone', async () => {
        await harness.rows.sweep(batch);
        return (await harness.rows.findSurvivors(batch)).length === 0;
      });
    } finally {
      done = true;
      await disturbed;
    }
    const names = (await harness.read('events', environmentId, ['trace_id'])).map(([name]) => name);
    expect(names).toEqual(Array.from({ length: 5 + more }, () => 'other'));
    expect(more).toBeGreaterThan(0);
  });
});
