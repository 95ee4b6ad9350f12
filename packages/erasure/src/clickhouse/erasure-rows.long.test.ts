import { StoreFault } from '@playline/stores';
import { until } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { DERIVED_TABLES } from '../stores/derived.ts';
import { SWEPT_TABLES } from '../stores/tables.ts';
import { type ClickHouseHarness, openClickHouseHarness } from '../test/open-rows.ts';
import { AFTER, BEFORE, createRowsOf, newBatch, newEnvironment, newKey, sweepAll, T } from '../test/people.ts';
import { openErasureRows } from './erasure-rows.ts';
import { createPredicates, toIdText } from './predicates.ts';

/** A plain number in a SELECT would be interpreted as seconds. */
const AT_T = `fromUnixTimestamp64Milli(${T}, 'UTC')`;

const DAY_MS = 86_400_000;
const DERIVED = DERIVED_TABLES.map(({ name }) => name);

let harness: ClickHouseHarness;
beforeAll(async () => {
  harness = await openClickHouseHarness({ mutationDeadlineMs: 60_000 });
});
afterAll(() => harness.close());

const addBatch = async (environmentId: string, key: Buffer) => {
  const batch = newBatch();
  await harness.rows.putTargets(batch, [{ environmentId, key, cutoffMs: T }]);
  return batch;
};

describe('erasure rows in ClickHouse', () => {
  const unfinished = () =>
    harness.query('SELECT count() FROM system.mutations WHERE database = currentDatabase() AND NOT is_done');

  it("a blanked row keeps its version and is still found by its owner's key", async () => {
    const environmentId = newEnvironment();
    const device = newKey();
    const row = { name: 'shared', identity_key: newKey(), anonymous_key: device, anonymous_id: 'd', kafka_offset: 77 };
    await harness.add('events', createRowsOf(environmentId).event(row));
    const versions = () =>
      harness.query(`SELECT version, kafka_offset FROM events WHERE environment_id = '${environmentId}'`);
    const before = await versions();
    await sweepAll(harness.rows, await addBatch(environmentId, device));
    expect(await harness.read('events', environmentId, ['anonymous_id'])).toEqual([['']]);
    expect(await versions()).toBe(before);
    expect(before).toMatch(/^\d+\t77$/);
    expect(await sweepAll(harness.rows, await addBatch(environmentId, row.identity_key))).toMatchObject([{ rows: 1 }]);
    expect(await harness.read('events', environmentId, ['trace_id'])).toEqual([]);
  });

  it('awaitInserts waits for inserts that are already running and ignores later inserts', async () => {
    const environmentId = newEnvironment();
    const insertFor = (seconds: number, name: string) =>
      harness.query(`INSERT INTO events (environment_id, event_name, trace_id)
        SELECT '${environmentId}', 'level_start', 'insert-${name}' FROM numbers(10) WHERE sleepEachRow(${seconds / 10}) = 0`);
    const running = async (name: string) =>
      (await harness.query('SELECT query FROM system.processes')).includes(`insert-${name}`);
    const before = insertFor(1, 'before');
    await until('the insert runs', () => running('before'));
    const waiting = harness.rows.awaitInserts();
    // After three more queries on this client, the list of running inserts has been read.
    for (let round = 0; round < 3; round++) await harness.rows.readBatches();
    const later = insertFor(3, 'later');
    await until('the other insert runs', () => running('later'));
    await waiting;
    expect([await running('before'), await running('later')]).toEqual([false, true]);
    const stop = new AbortController();
    const stopped = expect(harness.rows.awaitInserts(stop.signal)).rejects.toThrow('aborted by the test');
    stop.abort(new Error('aborted by the test'));
    await stopped;
    await Promise.all([before, later]);
  });

  it('removeDeleted rewrites all files that contain deleted rows', async () => {
    const environmentId = newEnvironment();
    const key = newKey();
    const { event, link, override, consent } = createRowsOf(environmentId);
    await harness.add('events', event({ name: 'one', identity_key: key }));
    await harness.add('identity_links', link({ name: 'one', b_key: key }));
    await harness.add('identity_overrides', override({ name: 'one', identity_key: key }));
    await harness.add('consent_log', consent({ name: 'one', identity_key: key }));
    const batch = await addBatch(environmentId, key);
    await sweepAll(harness.rows, batch);
    // Does not use the predicate under test.
    const onDisk = async () => {
      const count = (table: string, column: string) =>
        harness.query(`SELECT count() FROM ${table} WHERE ${column} = unhex('${key.toString('hex')}')
          SETTINGS apply_deleted_mask = 0, apply_patch_parts = 0`);
      const columns = SWEPT_TABLES.flatMap(({ name, clearing }) => clearing.ownKeys.map((own) => [name, own] as const));
      return (await Promise.all(columns.map(([table, column]) => count(table, column)))).map(Number);
    };
    expect((await onDisk()).reduce((sum, count) => sum + count)).toBe(4);
    const removedAtMs = await harness.rows.removeDeleted();
    expect((await onDisk()).every((count) => count === 0)).toBe(true);
    expect(await harness.rows.findOnDisk(batch)).toEqual([]);
    // Replaced files remain on disk for eight minutes.
    expect(await harness.rows.countReplaced(removedAtMs)).toBeGreaterThan(0);
    expect(await harness.rows.countReplaced(0)).toBe(0);
  });

  it('mutations and logged statements contain no keys, and dropTargets deletes the targets', async () => {
    const environmentId = newEnvironment();
    const key = newKey();
    await harness.add('events', createRowsOf(environmentId).event({ name: 'one', identity_key: key }));
    const batch = await addBatch(environmentId, key);
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
    // The batch id shows that both logs contain the statements of this test.
    expect(statements.filter((text) => text.includes(toIdText(batch))).length).toBeGreaterThan(5);
    for (const form of [key, key.toString('hex'), key.toString('hex').toUpperCase()])
      expect(statements.filter((text) => text.includes(form))).toEqual([]);
    expect(await harness.query(`SELECT count() FROM erasure_targets WHERE batch_id = '${toIdText(batch)}'`)).toBe('0');
  });

  it('a sweep kills a failed mutation and throws, and can be retried', async () => {
    const environmentId = newEnvironment();
    const key = newKey();
    await harness.add('events', createRowsOf(environmentId).event({ name: 'one', identity_key: key }));
    const batch = await addBatch(environmentId, key);
    const broken = `UPDATE trace_id = toString(throwIf(environment_id = '${environmentId}')) WHERE 1`;
    await harness.query(`ALTER TABLE events ${broken} SETTINGS mutations_sync = 0`);
    const fault = await harness.rows.sweep(batch).catch((error: unknown) => error);
    expect(fault).toBeInstanceOf(StoreFault);
    expect(fault).toMatchObject({ kind: 'transient', code: 'MUTATION_FAILED' });
    expect(await unfinished()).toBe('1');
    expect(await harness.rows.findSurvivors(batch)).toMatchObject([{ rows: 1 }]);
    await harness.query(`KILL MUTATION WHERE database = currentDatabase() AND position(command, 'throwIf') > 0 SYNC`);
    await sweepAll(harness.rows, batch);
    expect(await harness.rows.findSurvivors(batch)).toEqual([]);
    expect(await unfinished()).toBe('0');
  });

  it('a sweep throws when a mutation exceeds its deadline, and the next sweep waits for the mutation', async () => {
    const environmentId = newEnvironment();
    const key = newKey();
    await harness.add('events', createRowsOf(environmentId).event({ name: 'one', identity_key: key }));
    const batch = await addBatch(environmentId, key);
    const shortDeadlineRows = openErasureRows({ ...harness.target, mutationDeadlineMs: 1 });
    await harness.query('SYSTEM STOP MERGES events');
    try {
      await expect(shortDeadlineRows.sweep(batch)).rejects.toMatchObject({ kind: 'transient', code: 'MUTATION_WAIT' });
      await expect(shortDeadlineRows.sweep(batch)).rejects.toMatchObject({ kind: 'transient', code: 'MUTATION_WAIT' });
      expect(await unfinished()).toBe('1');
    } finally {
      await harness.query('SYSTEM START MERGES events');
      await shortDeadlineRows.close();
    }
    await sweepAll(harness.rows, batch);
    expect(await harness.rows.findSurvivors(batch)).toEqual([]);
    expect(await unfinished()).toBe('0');
  });

  it('an aborted call leaves its mutation running, and the next call waits for the mutation', async () => {
    const environmentId = newEnvironment();
    const key = newKey();
    await harness.add('events', createRowsOf(environmentId).event({ name: 'one', identity_key: key }));
    const batch = await addBatch(environmentId, key);
    const isStopped = async (work: (signal: AbortSignal) => Promise<unknown>) => {
      const stop = new AbortController();
      const rejection = expect(work(stop.signal)).rejects.toThrow('aborted by the test');
      await until('the mutation is running', async () => (await unfinished()) === '1');
      stop.abort(new Error('aborted by the test'));
      await rejection;
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

  it('a failed count throws and never returns zero', async () => {
    const batch = await addBatch(newEnvironment(), newKey());
    const down = openErasureRows({ url: 'http://127.0.0.1:1', user: 'none', password: '', database: 'none' });
    const otherDatabase = openErasureRows({ ...harness.target, database: 'default' });
    try {
      for (const count of [() => down.findSurvivors(batch), () => down.findOnDisk(batch), () => down.countReplaced(T)])
        await expect(count()).rejects.toMatchObject({ name: 'StoreFault', kind: 'transient' });
      await expect(otherDatabase.findSurvivors(batch)).rejects.toMatchObject({ name: 'StoreFault', kind: 'permanent' });
    } finally {
      await Promise.all([down.close(), otherDatabase.close()]);
    }
  });

  it('a search reads only the granules selected by the index or the sorting key', async () => {
    const environmentId = newEnvironment();
    const key = newKey();
    // A granule has 8,192 rows. The table has ten granules, and one of them contains the person.
    await harness.query(`INSERT INTO events (environment_id, event_name, event_time, received_at, identity_key, anonymous_key, message_id)
      SELECT '${environmentId}', 'a', ${AT_T}, ${AT_T}, unhex(lower(hex(MD5(toString(number))))),
        unhex(lower(hex(MD5(toString(-number))))), generateUUIDv4() FROM numbers(81920)`);
    await harness.add('events', createRowsOf(environmentId).event({ name: 'one', identity_key: key }));
    await harness.query('OPTIMIZE TABLE events FINAL');
    const { isErased, isErasedBy } = createPredicates(SWEPT_TABLES[0]!.clearing, await addBatch(environmentId, key));
    for (const where of [isErased, isErasedBy('anonymous_key')]) {
      const plan = await harness.query(`EXPLAIN indexes = 1 SELECT count() FROM events WHERE ${where}`);
      const granules = Number(/ReadFromMergeTree \(\w+\.events\)[\s\S]*?Granules: (\d+)/.exec(plan)?.[1]);
      expect(granules).toBeLessThanOrEqual(2);
    }
  });

  it("a sweep during inserts and merges deletes only the person's rows", async () => {
    const environmentId = newEnvironment();
    const { event } = createRowsOf(environmentId);
    const [erased, bystander] = [newKey(), newKey()];
    for (let row = 0; row < 5; row++) {
      await harness.add('events', event({ name: 'erased', identity_key: erased }));
      await harness.add('events', event({ name: 'other', identity_key: bystander }));
    }
    let [isDone, added] = [false, 0];
    const disturb = async () => {
      for (; !isDone; added++) {
        await harness.add('events', event({ name: 'other', identity_key: bystander }));
        await harness.query('OPTIMIZE TABLE events FINAL');
      }
    };
    const disturbed = disturb();
    const batch = await addBatch(environmentId, erased);
    try {
      await until('the rows are deleted', async () => {
        await harness.rows.sweep(batch);
        return (await harness.rows.findSurvivors(batch)).length === 0;
      });
    } finally {
      isDone = true;
      await disturbed;
    }
    const names = (await harness.read('events', environmentId, ['trace_id'])).map(([name]) => name);
    expect(names).toEqual(Array.from({ length: 5 + added }, () => 'other'));
    expect(added).toBeGreaterThan(0);
  });
});

describe('derived rows in ClickHouse', () => {
  const readDerived = async (environmentId: string) => {
    const of = `WHERE environment_id = '${environmentId}'`;
    const days = await harness.query(
      `SELECT lower(hex(identity_key)), day, event_name FROM identity_days FINAL ${of} ORDER BY ALL FORMAT JSONCompactEachRow`,
    );
    const identities = await harness.query(
      `SELECT lower(hex(identity_key)), toUnixTimestamp64Milli(min(first_seen_at)), toUnixTimestamp64Milli(max(last_seen_at)),
         splitByChar(char(255), substring(max(first_touch), 18))[2], substring(max(latest_traits), 33)
       FROM identities ${of} GROUP BY identity_key ORDER BY ALL FORMAT JSONCompactEachRow`,
    );
    const sessions = await harness.query(
      `SELECT lower(hex(identity_key)), day, session_id, toUnixTimestamp64Milli(min(first_at)), toUnixTimestamp64Milli(max(last_at)),
         substring(max(entry), 17), uniqExactArray(messages)
       FROM session_days ${of} GROUP BY identity_key, day, session_id ORDER BY ALL FORMAT JSONCompactEachRow`,
    );
    const toLines = (text: string) => text.split('\n').filter(Boolean);
    return { days: toLines(days), identities: toLines(identities), sessions: toLines(sessions) };
  };
  /** Adds a person's events before and after the cut-off, including on the day of the cut-off. */
  const addEventsAroundCutoff = async (environmentId: string, key: Buffer) => {
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
          session_id: 'one',
          page_url: `https://game.example/${page}`,
          page_path: `/${page}`,
          traits: `{"from":"${page}"}`,
        }),
      );
    await at(BEFORE - 40 * DAY_MS, 'old');
    await at(BEFORE, 'before');
    await at(AFTER, 'after');
    await at(AFTER + DAY_MS, 'later', 'returned');
  };

  /** Sweeps a person who has later events. Returns the batch and the derived rows. */
  const eraseReturningPerson = async () => {
    const environmentId = newEnvironment();
    const key = newKey();
    await addEventsAroundCutoff(environmentId, key);
    const batch = await addBatch(environmentId, key);
    await sweepAll(harness.rows, batch);
    return { environmentId, batch, expected: await readDerived(environmentId) };
  };
  const countDeletes = async (...tables: readonly string[]) =>
    Number(
      await harness.query(`SELECT count() FROM system.mutations WHERE database = currentDatabase() AND NOT is_done
        AND table IN (${tables.map((name) => `'${name}'`).join(', ')})`),
    );
  /** Blocks deletes in these tables while `work` runs. Merge threads run the deletes. */
  const blockDeletes = async (tables: readonly string[], work: () => Promise<void>) => {
    for (const name of tables) await harness.query(`SYSTEM STOP MERGES ${name}`);
    try {
      await work();
    } finally {
      for (const name of tables) await harness.query(`SYSTEM START MERGES ${name}`);
    }
  };

  it("a sweep rederives a person's rows from later events and keeps other people's rows", async () => {
    const [environmentId, otherEnvironment] = [newEnvironment(), newEnvironment()];
    const [key, other] = [newKey(), newKey()];
    await addEventsAroundCutoff(environmentId, key);
    await addEventsAroundCutoff(environmentId, other);
    await addEventsAroundCutoff(otherEnvironment, other);
    const before = await readDerived(environmentId);
    expect(before.days).toHaveLength(8);
    const kept = await readDerived(otherEnvironment);
    const batch = await addBatch(environmentId, key);
    await sweepAll(harness.rows, batch);
    const after = await readDerived(environmentId);
    const name = key.toString('hex');
    expect(after.days.filter((row) => row.includes(name)).map((row) => JSON.parse(row))).toEqual([
      [name, '2026-06-15', 'played'],
      [name, '2026-06-16', 'returned'],
    ]);
    expect(after.identities.filter((row) => row.includes(name)).map((row) => JSON.parse(row))).toEqual([
      [name, String(AFTER), String(AFTER + DAY_MS), 'https://game.example/after', '{"from":"later"}'],
    ]);
    expect(after.sessions.filter((row) => row.includes(name)).map((row) => JSON.parse(row))).toEqual([
      [name, '2026-06-15', 'one', String(AFTER), String(AFTER), '/after', '1'],
      [name, '2026-06-16', 'one', String(AFTER + DAY_MS), String(AFTER + DAY_MS), '/later', '1'],
    ]);
    const ofOther = (rows: typeof after) =>
      Object.values(rows).flatMap((each) => each.filter((row) => !row.includes(name)));
    expect(ofOther(after)).toEqual(ofOther(before));
    expect(await readDerived(otherEnvironment)).toEqual(kept);
    expect(await harness.rows.findSurvivors(batch)).toEqual([]);
  });

  it('derived rows without events are found as survivors, and the next sweep removes them', async () => {
    const environmentId = newEnvironment();
    const [key, other] = [newKey(), newKey()];
    for (const each of [key, other]) await addEventsAroundCutoff(environmentId, each);
    const batch = await addBatch(environmentId, key);
    await harness.query(`DELETE FROM events WHERE environment_id = '${environmentId}' AND event_time < '2026-06-15'`);
    expect(await harness.rows.findSurvivors(batch)).toEqual([
      { table: 'identity_days', column: 'identity_key', as: 'own', environmentId, key, rows: 2 },
      { table: 'identities', column: 'identity_key', as: 'own', environmentId, key, rows: 2 },
      { table: 'session_days', column: 'identity_key', as: 'own', environmentId, key, rows: 2 },
    ]);
    await harness.rows.sweep(batch);
    expect(await harness.rows.findSurvivors(batch)).toEqual([]);
  });

  it('the next sweep rederives rows if an eraser crashed after the delete', async () => {
    const { environmentId, batch, expected } = await eraseReturningPerson();
    for (const table of DERIVED) await harness.query(`DELETE FROM ${table} WHERE environment_id = '${environmentId}'`);
    expect((await readDerived(environmentId)).days).toEqual([]);
    await harness.rows.sweep(batch);
    expect(await readDerived(environmentId)).toEqual(expected);
  });

  it('findOnDisk finds deleted derived rows until removeDeleted removes them and reloads the dictionary', async () => {
    const environmentId = newEnvironment();
    const key = newKey();
    await addEventsAroundCutoff(environmentId, key);
    await harness.add('identity_overrides', createRowsOf(environmentId).override({ name: 'one', identity_key: key }));
    const inMemory = () =>
      harness.query(
        `SELECT toUInt8(dictHas('identity_persons', reinterpretAsUInt64(unhex('${key.toString('hex')}'))))`,
      );
    await harness.query('SYSTEM RELOAD DICTIONARY identity_persons');
    expect(await inMemory()).toBe('1');
    const batch = await addBatch(environmentId, key);
    // A background merge would remove deleted rows before the test reads them.
    for (const table of ['events', 'identity_overrides', ...DERIVED])
      await harness.query(`ALTER TABLE ${table} MODIFY SETTING max_bytes_to_merge_at_max_space_in_pool = 1`);
    await sweepAll(harness.rows, batch);
    const tables = async () => (await harness.rows.findOnDisk(batch)).map(({ table }) => table);
    expect(await tables()).toEqual(['events', 'identity_overrides']);
    for (const table of ['events', 'identity_overrides'])
      await harness.query(`ALTER TABLE ${table} APPLY DELETED MASK SETTINGS mutations_sync = 2`);
    expect(await tables()).toEqual(DERIVED);
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
    expect(await readDerived(environmentId)).toEqual({ days: [], identities: [], sessions: [] });
    const batch = await addBatch(environmentId, side);
    await sweepAll(harness.rows, batch);
    expect(await harness.read('events', environmentId, ['trace_id'])).toEqual([]);
  });

  it('a sweep that is aborted after the delete still rederives the rows', async () => {
    const { environmentId, batch, expected } = await eraseReturningPerson();
    for (const table of DERIVED) {
      const stop = new AbortController();
      let sweep: Promise<unknown> = Promise.resolve();
      await blockDeletes([table], async () => {
        sweep = harness.rows.sweep(batch, stop.signal);
        await until('the delete is submitted', async () => (await countDeletes(table)) === 1);
        stop.abort(new Error('aborted by the test'));
      });
      await sweep;
      expect(await readDerived(environmentId)).toEqual(expected);
    }
  });

  it('a sweep rederives the rows when a delete exceeds its deadline', async () => {
    const { environmentId, batch, expected } = await eraseReturningPerson();
    const shortDeadlineRows = openErasureRows({ ...harness.target, mutationDeadlineMs: 1 });
    onTestFinished(() => shortDeadlineRows.close());
    await blockDeletes(DERIVED, () =>
      expect(shortDeadlineRows.sweep(batch)).rejects.toMatchObject({ kind: 'transient', code: 'MUTATION_WAIT' }),
    );
    await until('the delete has ended', async () => (await countDeletes(...DERIVED)) === 0);
    expect(await readDerived(environmentId)).toEqual(expected);
  });

  it('a sweep rederives the rows when another eraser drops the targets after the delete', async () => {
    const { environmentId, batch, expected } = await eraseReturningPerson();
    const listed = async () => (await harness.rows.readBatches()).map((each) => each.toString('hex')).toSorted();
    const others = (await listed()).filter((each) => each !== batch.toString('hex'));
    const tag = `insert-${newKey().toString('hex')}`;
    const isInsert = `current_database = currentDatabase() AND position(query, '${tag}') > 0 AND query_kind = 'Insert'`;
    let [sweep, insert]: Promise<unknown>[] = [];
    await blockDeletes(DERIVED, async () => {
      sweep = expect(harness.rows.sweep(batch)).rejects.toMatchObject({ code: 'NO_TARGETS' });
      await until('the delete is submitted', async () => (await countDeletes(...DERIVED)) === 1);
      // The sweep waits for this insert between the delete and the rederivation.
      insert = expect(
        harness.query(`INSERT INTO events (environment_id, event_name, trace_id)
          SELECT '${environmentId}-2', 'level_start', '${tag}' FROM numbers(100) WHERE sleepEachRow(0.6) = 0
          SETTINGS max_block_size = 1`),
      ).rejects.toThrow();
      const running = `SELECT count() FROM system.processes WHERE ${isInsert}`;
      await until('the insert runs', async () => (await harness.query(running)) === '1');
    });
    await until('all derived rows are deleted', async () => {
      const rows = await readDerived(environmentId);
      return Object.values(rows).flat().length === 0;
    });
    await harness.rows.dropTargets(batch);
    await harness.query(`KILL QUERY WHERE ${isInsert} SYNC`);
    await Promise.all([insert, sweep]);
    expect(await readDerived(environmentId)).toEqual(expected);
    expect(await listed()).toEqual(others);
  });
});
