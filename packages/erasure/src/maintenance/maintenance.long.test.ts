import { setTimeout as delay } from 'node:timers/promises';
import { until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ERASED_TABLES } from '../stores/tables.ts';
import { createRowsOf, newBatch, newEnvironment, newKey, sweepAll, T } from '../test/people.ts';
import { EMPTY_PEOPLE, openClickHouseStores, putErased } from '../test/stores.ts';
import { dropStaleBatches } from './batches.ts';
import { removeFromDisk, scrub } from './scrub.ts';
import { isVerified, verifyReceipt } from './verify-receipt.ts';

const NOW = T + 24 * 3_600_000;
const wallClockMs = () => NOW;
let stores: Awaited<ReturnType<typeof openClickHouseStores>>;

beforeAll(async () => {
  stores = await openClickHouseStores();
  // Deletes replaced files after a second.
  const quick = `old_parts_lifetime = 1, cleanup_delay_period = 1, max_cleanup_delay_period = 1,
    cleanup_delay_period_random_add = 0`;
  for (const table of [...ERASED_TABLES.map(({ name }) => name), 'erasure_targets', 'erasure_found']) {
    await stores.harness.query(`ALTER TABLE ${table} MODIFY SETTING ${quick}`);
    // Reattaching restarts the cleanup thread, which otherwise sleeps for half a minute.
    await stores.harness.query(`DETACH TABLE ${table} SYNC`);
    await stores.harness.query(`ATTACH TABLE ${table}`);
  }
});
afterAll(() => stores.close());

it('two scrubs concurrent with an erasure delete all rows of the erased people and no other rows', async () => {
  const environmentId = newEnvironment();
  const [erased, unfinished, bystander] = [newKey(), newKey(), newKey()];
  const { event } = createRowsOf(environmentId);
  const { harness, records } = stores;
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

it('a scrub that is aborted during a mutation keeps its targets until they are stale', async () => {
  const environmentId = newEnvironment();
  const { harness, records } = stores;
  const key = newKey();
  await putErased(records, { environmentId, keys: [key] });
  await harness.add('events', createRowsOf(environmentId).event({ name: 'old', identity_key: key }));
  const left = () => harness.read('events', environmentId, ['trace_id']);
  const { rows } = harness;
  const stop = new AbortController();
  await harness.query('SYSTEM STOP MERGES events');
  try {
    const rejection = expect(
      scrub({ rows, records, people: EMPTY_PEOPLE, wallClockMs, signal: stop.signal }),
    ).rejects.toThrow('aborted by the test');
    const mutations = 'system.mutations WHERE database = currentDatabase() AND NOT is_done';
    await until(
      'the mutation is running',
      async () => (await harness.query(`SELECT count() FROM ${mutations}`)) === '1',
    );
    stop.abort(new Error('aborted by the test'));
    await rejection;
    expect(await left()).toEqual([['old']]);
  } finally {
    await harness.query('SYSTEM START MERGES events');
  }
  await until('the mutation has ended', async () => (await left()).length === 0);
  expect(await dropStaleBatches({ rows, wallClockMs })).toBe(0);
  expect(await dropStaleBatches({ rows, wallClockMs: () => NOW + 7 * 3_600_000 })).toBe(1);
});

it('removeFromDisk removes deleted rows from files and marks the receipt', async () => {
  const { harness, records } = stores;
  const { rows } = harness;
  const [environmentId, key] = [newEnvironment(), newKey()];
  const { event, link } = createRowsOf(environmentId);
  const id = await putErased(records, { environmentId, keys: [key] });
  await harness.add('events', event({ name: 'own', identity_key: key }));
  await harness.add('identity_links', link({ name: 'link', a_key: key }));
  const verify = async () => (await verifyReceipt({ rows, records, wallClockMs, checkDisk: true }, id))!;
  const left = await verify();
  expect(left.remaining).toMatchObject({ 'clickhouse.events': 1, 'clickhouse.identity_links': 1 });
  expect(isVerified(left)).toBe(false);
  await scrub({ rows, records, people: EMPTY_PEOPLE, wallClockMs });
  const before = await records.readReceipt(id);
  const onDisk = { 'clickhouse.events': 1, 'clickhouse.identity_links': 1 };
  expect(await verify()).toMatchObject({ remaining: { 'clickhouse.events': 0 }, onDisk });
  const pause = async () => void (await delay(500));
  const removal = await removeFromDisk({ rows, records, wallClockMs, pause });
  expect(removal).toMatchObject({ deferred: 0, foundOnDisk: [] });
  expect(await records.readReceipt(id)).toEqual({ ...before, physicallyErasedAt: NOW });
  const clean = await verify();
  expect(new Set(Object.values({ ...clean.remaining, ...clean.onDisk }))).toEqual(new Set([0]));
  expect(isVerified(clean)).toBe(true);
  expect(await rows.readBatches()).toEqual([]);
});
