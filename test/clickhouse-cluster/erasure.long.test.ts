import { randomUUID } from 'node:crypto';
import { verifyReceipt } from '@playline/erasure';
import { openErasureRecords, openErasureRows } from '@playline/erasure/clickhouse';
import { createQueryRows } from '@playline/stores';
import { runStatement } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Nodes, openNodes } from '../../infra/clickhouse/test/open-nodes.ts';
import type { MemoryRow } from '../../packages/erasure/src/test/memory/rows.ts';
import type { RowsHarness } from '../../packages/erasure/src/test/open-rows.ts';
import { createRowsOf, newBatch, newEnvironment, newKey, sweepAll, T } from '../../packages/erasure/src/test/people.ts';
import { describeErasureRows } from '../../packages/erasure/src/test/rows-contract.ts';
import { putErased } from '../../packages/erasure/src/test/stores.ts';
import { findNodeDifferences } from '../../services/operator/src/verify/nodes.ts';

const START_MS = 120_000;
let nodes: Nodes;
beforeAll(async () => {
  nodes = await openNodes({ nodes: 2 });
}, START_MS);
afterAll(() => nodes?.close(), START_MS);

const accountOf = (database: string, urls = nodes.urls) => ({
  url: urls[0]!,
  user: 'operator',
  password: nodes.secrets.operatorPassword,
  database,
  cluster: { name: nodes.cluster!, urls },
});
const runOn = (index: number, sql: string) =>
  runStatement({ ...accountOf('playline'), url: nodes.urls[index]!, database: 'playline' }, sql);
const run = (sql: string) => runStatement(accountOf('playline_all'), sql);

const toLiteral = (value: unknown) => {
  if (Buffer.isBuffer(value)) return `unhex('${value.toString('hex')}')`;
  return typeof value === 'number' ? String(value) : `'${value}'`;
};
async function add(table: string, row: MemoryRow): Promise<void> {
  const values = Object.values(row).map(toLiteral);
  await run(`INSERT INTO ${table} (${Object.keys(row).join(', ')}) VALUES (${values.join(', ')})`);
}

async function openHarness(): Promise<RowsHarness> {
  const rows = openErasureRows(accountOf('playline'));
  return {
    rows,
    add,
    async read(table, environmentId, columns) {
      const show = columns.map((column) => (column.endsWith('_key') ? `lower(hex(${column}))` : `toString(${column})`));
      const found = await run(
        `SELECT [${show.join(', ')}] AS row FROM ${table} WHERE environment_id = '${environmentId}' FORMAT JSONEachRow`,
      );
      return found.split('\n').flatMap((line) => (line === '' ? [] : [(JSON.parse(line) as { row: string[] }).row]));
    },
    close: () => rows.close(),
  };
}

describeErasureRows('two ClickHouse nodes', openHarness);

it('a person with rows on both shards is erased from both, and each row is counted once', async () => {
  const { rows } = await openHarness();
  const [environmentId, batch] = [newEnvironment(), newBatch()];
  const keys = Array.from({ length: 12 }, newKey);
  const { event, override } = createRowsOf(environmentId);
  for (const key of keys) {
    await add('events', event({ name: 'own', identity_key: key }));
    await add('identity_overrides', override({ name: 'own', identity_key: key }));
  }
  const countEach = async (table: string) =>
    Promise.all(
      [0, 1].map((node) => runOn(node, `SELECT count() FROM ${table} WHERE environment_id = '${environmentId}'`)),
    );
  const stored = (await countEach('events')).map(Number);
  expect(stored.every((count) => count > 0)).toBe(true);
  expect(await countEach('identity_overrides')).toEqual(['12', '12']);
  await rows.putTargets(
    batch,
    keys.map((key) => ({ environmentId, key, cutoffMs: T })),
  );
  const found = await sweepAll(rows, batch);
  const sum = (table: string) => found.filter((each) => each.table === table).reduce((all, each) => all + each.rows, 0);
  expect([sum('events'), sum('identity_overrides')]).toEqual([12, 12]);
  for (const table of ['events', 'identity_overrides', 'identity_days', 'identities', 'session_days'])
    expect([table, await countEach(table)]).toEqual([table, ['0', '0']]);
  await rows.dropTargets(batch);
  expect((await rows.readBatches()).some((each) => each.equals(batch))).toBe(false);
  await rows.close();
});

it('found rows are counted per node, because a node that fails does not stop the deletion of rows on another', async () => {
  const rows = openErasureRows(accountOf('playline'));
  const away = openErasureRows(accountOf('playline', [nodes.urls[0]!, 'http://127.0.0.1:3']));
  const [environmentId, batch] = [newEnvironment(), newBatch()];
  const keys = Array.from({ length: 12 }, newKey);
  const { event, override } = createRowsOf(environmentId);
  for (const key of keys) {
    await add('events', event({ name: 'own', identity_key: key }));
    await add('identity_overrides', override({ name: 'own', identity_key: key }));
  }
  // A merge could move rows before they are deleted.
  for (const index of [0, 1]) await runOn(index, 'OPTIMIZE TABLE events FINAL');
  const countEvents = (index: number) =>
    runOn(index, `SELECT count() FROM events WHERE environment_id = '${environmentId}'`);
  const stored = [Number(await countEvents(0)), Number(await countEvents(1))];
  await rows.putTargets(
    batch,
    keys.map((key) => ({ environmentId, key, cutoffMs: T })),
  );
  const readCounts = async (table: string) =>
    (await rows.readFound(batch)).map(({ found }) =>
      found.filter((each) => each.table === table).reduce((sum, each) => sum + each.rows, 0),
    );
  await expect(away.sweep(batch)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  expect([await readCounts('events'), await readCounts('identity_overrides')]).toEqual([
    [stored[0], 0],
    [12, 0],
  ]);
  await rows.sweep(batch);
  expect([await readCounts('events'), await readCounts('identity_overrides')]).toEqual([
    [0, stored[1]],
    [0, 0],
  ]);
  await sweepAll(rows, batch);
  await rows.dropTargets(batch);
  for (const each of [rows, away]) await each.close();
});

it('an erasure is not proven while a node is away, and verify finds a row on any shard', async () => {
  const rows = openErasureRows(accountOf('playline'));
  const away = openErasureRows(accountOf('playline', [nodes.urls[0]!, 'http://127.0.0.1:3']));
  const records = openErasureRecords(accountOf('playline'));
  const [environmentId, batch] = [newEnvironment(), newBatch()];
  const keys = Array.from({ length: 8 }, newKey);
  const targets = keys.map((key) => ({ environmentId, key, cutoffMs: T }));
  await rows.putTargets(batch, targets);
  for (const call of [
    () => away.putTargets(batch, targets),
    () => away.sweep(batch),
    () => away.findSurvivors(batch),
    () => away.findOnDisk(batch),
    () => away.awaitInserts(),
    () => away.removeDeleted(),
    () => away.countReplaced(T),
    () => away.dropTargets(batch),
  ])
    await expect(call()).rejects.toMatchObject({ name: 'StoreFault', code: 'ECONNREFUSED' });
  const erasureId = await putErased(records, { environmentId, keys });
  const verify = async () =>
    (await verifyReceipt({ rows, records, checkDisk: false, wallClockMs: Date.now }, erasureId))!.remaining;
  expect((await verify())['clickhouse.events']).toBe(0);
  const { event } = createRowsOf(environmentId);
  for (const index of [0, 1]) {
    const row = event({ name: 'late', identity_key: keys[0]!, message_id: randomUUID() });
    await runOn(
      index,
      `INSERT INTO events (${Object.keys(row).join(', ')}) VALUES (${Object.values(row).map(toLiteral).join(', ')})`,
    );
    expect((await verify())['clickhouse.events']).toBe(index + 1);
  }
  for (const each of [rows, away, records]) await each.close();
});

it('verify finds a row on a wrong shard and a copy that differs between nodes', async () => {
  const queries = nodes.urls.map((url) => createQueryRows({ ...accountOf('playline'), url, database: 'playline' }));
  const find = () => findNodeDifferences(queries, () => {});
  for (const index of [0, 1])
    for (const table of [
      'events',
      'identity_days',
      'identities',
      'session_days',
      'identity_overrides',
      'erasure_targets',
    ])
      await runOn(index, `TRUNCATE TABLE ${table}`);
  const environmentId = newEnvironment();
  for (const key of Array.from({ length: 20 }, newKey)) {
    await add('events', createRowsOf(environmentId).event({ name: 'own', identity_key: key }));
    await add('identity_overrides', createRowsOf(environmentId).override({ name: 'own', identity_key: key }));
  }
  expect(await find()).toEqual([]);
  const columns = 'environment_id, type, event_name, event_time, received_at, message_id, identity_key';
  await runOn(1, `INSERT INTO events (${columns}) SELECT ${columns} FROM cluster('playline_1_home', playline.events)`);
  await runOn(1, "INSERT INTO identity_overrides (environment_id, version) VALUES ('other', 1)");
  expect((await find()).map((sentence) => sentence.replace(/\d+ rows/, 'some rows'))).toEqual([
    'events: some rows on node 2 belong to another shard',
    'identity_days: some rows on node 2 belong to another shard',
    'identities: some rows on node 2 belong to another shard',
    'identity_overrides: the nodes have different copies',
  ]);
});
