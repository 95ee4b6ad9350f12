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

describe('erasure rows in ClickHouse', () => {
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

  it('a blanked row keeps its version, and is still found by its owner', async () => {
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
    expect(await sweepAll(harness.rows, await target(environmentId, row.identity_key))).toMatchObject([{ rows: 1 }]);
    expect(await harness.read('events', environmentId, ['trace_id'])).toEqual([]);
  });

  it('awaitInserts waits for running inserts, and not for later ones', async () => {
    const environmentId = newEnvironment();
    const insertFor = (seconds: number, name: string) =>
      harness.query(`INSERT INTO events (environment_id, event_name, trace_id)
        SELECT '${environmentId}', 'level_start', 'insert-${name}' FROM numbers(10) WHERE sleepEachRow(${seconds / 10}) = 0`);
    const running = async (name: string) =>
      (await harness.query('SELECT query FROM system.processes')).includes(`insert-${name}`);
    const before = insertFor(1, 'before');
    await until('the insert runs', () => running('before'));
    const waiting = harness.rows.awaitInserts();
    // Later queries of the same client: the list of running inserts is read by then.
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

  it('removed rows are in no active file', async () => {
    const environmentId = newEnvironment();
    const key = newKey();
    const { event, link, override, consent } = createRowsOf(environmentId);
    await harness.add('events', event({ name: 'one', identity_key: key }));
    await harness.add('identity_links', link({ name: 'one', b_key: key }));
    await harness.add('identity_overrides', override({ name: 'one', identity_key: key }));
    await harness.add('consent_log', consent({ name: 'one', identity_key: key }));
    const batch = await target(environmentId, key);
    await sweepAll(harness.rows, batch);
    // Not with the predicate under test.
    const onDisk = async () => {
      const count = (table: string, column: string) =>
        harness.query(`SELECT count() FROM ${table} WHERE ${column} = unhex('${key.toString('hex')}')
          SETTINGS apply_deleted_mask = 0, apply_patch_parts = 0`);
      const columns = SWEPT_TABLES.flatMap(({ name, clearing }) => clearing.own.map((own) => [name, own] as const));
      return (await Promise.all(columns.map(([table, column]) => count(table, column)))).map(Number);
    };
    expect((await onDisk()).reduce((sum, count) => sum + count)).toBe(4);
    const removedAtMs = await harness.rows.removeDeleted();
    expect((await onDisk()).every((count) => count === 0)).toBe(true);
    expect(await harness.rows.findOnDisk(batch)).toEqual([]);
    // Replaced files remain for a while.
    expect(await harness.rows.countReplaced(removedAtMs)).toBeGreaterThan(0);
    expect(await harness.rows.countReplaced(0)).toBe(0);
  });

  it('no key is left in mutations, logged statements or targets', async () => {
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
    const statements = texts.map((text) => Buffer.from(text, 'base64'));
    // The control: the batch is named in both.
    expect(statements.filter((text) => text.includes(toIdText(batch))).length).toBeGreaterThan(5);
    for (const form of [key, key.toString('hex'), key.toString('hex').toUpperCase()])
      expect(statements.filter((text) => text.includes(form))).toEqual([]);
    expect(await harness.query(`SELECT count() FROM erasure_targets WHERE batch_id = '${toIdText(batch)}'`)).toBe('0');
  });

  it('a failed mutation is a fault and is killed, and the sweep may be repeated', async () => {
    const environmentId = newEnvironment();
    const key = newKey();
    await harness.add('events', createRowsOf(environmentId).event({ name: 'one', identity_key: key }));
    const batch = await target(environmentId, key);
    // A mutation that fails and blocks all later ones.
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

  it('a mutation that exceeds its deadline is a fault, and the next sweep waits for it', async () => {
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

  it('an aborted wait leaves the mutation running, and the next call waits for it', async () => {
    const environmentId = newEnvironment();
    const key = newKey();
    await harness.add('events', createRowsOf(environmentId).event({ name: 'one', identity_key: key }));
    const batch = await target(environmentId, key);
    const isStopped = async (work: (signal: AbortSignal) => Promise<unknown>) => {
      const stop = new AbortController();
      const over = expect(work(stop.signal)).rejects.toThrow('enough');
      await until('the mutation is running', async () => (await unfinished()) === '1');
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

  it('a store that cannot count is a fault, never zero', async () => {
    const batch = await target(newEnvironment(), newKey());
    const away = openErasureRows({ url: 'http://127.0.0.1:1', user: 'none', password: '', database: 'none' });
    const elsewhere = openErasureRows({ ...harness.target, database: 'default' });
    try {
      for (const count of [() => away.findSurvivors(batch), () => away.findOnDisk(batch), () => away.countReplaced(T)])
        await expect(count()).rejects.toMatchObject({ name: 'StoreFault', kind: 'passing' });
      await expect(elsewhere.findSurvivors(batch)).rejects.toMatchObject({ name: 'StoreFault', kind: 'final' });
    } finally {
      await Promise.all([away.close(), elsewhere.close()]);
    }
  });

  it('a search reads only the granules that the index or the sorting key selects', async () => {
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

  it('a sweep during inserts and merges deletes all rows of the person and no other', async () => {
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
