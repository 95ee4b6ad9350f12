import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { createAnalystStore } from '@playline/access-keys';
import { openErasureRows } from '@playline/erasure/clickhouse';
import { openEventStore } from '@playline/events/clickhouse';
import { createConnectionFaults, createQueryRows } from '@playline/stores';
import { runStatement } from '@playline/testkit';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { applySql } from '../../infra/clickhouse/apply.ts';
import { reshard } from '../../infra/clickhouse/reshard.ts';
import { type Nodes, openNodes } from '../../infra/clickhouse/test/open-nodes.ts';
import { newBatch, sweepAll } from '../../packages/erasure/src/test/people.ts';
import { EVENT_TABLE_COLUMNS } from '../../packages/events/src/columns.ts';
import { findNodeDifferences } from '../../services/operator/src/verify/nodes.ts';

const START_MS = 120_000;
const ROWS = 20_000;
let nodes: Nodes;
beforeAll(async () => {
  nodes = await openNodes({ nodes: 3, clusters: [2, 3] });
}, START_MS);
afterAll(() => nodes?.close(), START_MS);

const accountOf = (index: number, database = 'playline') => ({
  url: nodes.urls[index]!,
  user: 'operator',
  password: nodes.secrets.operatorPassword,
  database,
});
const accountsOf = (...indexes: readonly number[]) => indexes.map((index) => accountOf(index));
const read = (sql: string, index = 0, database = 'playline') => runStatement(accountOf(index, database), sql);
const silently = () => {};

const FILL = `INSERT INTO events (environment_id, type, event_name, event_time, received_at, message_id, identity_key, session_id, kafka_partition, kafka_offset)
  SELECT 'game', 'track', concat('event ', toString(number % 5)), toDateTime64('2026-06-01 00:00:00', 3, 'UTC') + number * 150,
    toDateTime64('2026-06-01 00:00:00', 3, 'UTC') + number * 150, generateUUIDv4(),
    if(number % 9 = 0, toFixedString('', 16), sipHash128(toUInt16(number % 700))), toString(number % 900), 0, number FROM numbers(${ROWS})`;
const FILL_OVERRIDES = `INSERT INTO identity_overrides (environment_id, identity_key, person_key, kind, linked_at, version)
  SELECT 'game', sipHash128(toUInt16(number)), sipHash128(toUInt16(number + 1)), 'anonymous', now64(3), number FROM numbers(0, 100, 2)`;
const ERASED = 'sipHash128(toUInt16(2))';
const QUERIES = [
  'SELECT count(), uniqExact(kafka_offset), sum(cityHash64(message_id)) FROM events_exact',
  'SELECT count(), uniqExact(person_key) FROM person_days',
  'SELECT count(), min(first_seen_at), max(last_seen_at) FROM persons',
  "SELECT count(), sum(events) FROM sessions_between(environment = 'game', since = '2026-06-01', until = '2026-07-30')",
];
async function readAll(): Promise<string[]> {
  const answers: string[] = [];
  for (const sql of QUERIES) answers.push(await read(sql));
  return answers;
}

async function dropDatabases(index: number): Promise<void> {
  for (const database of ['playline', 'playline_rows', 'playline_all'])
    await read(`DROP DATABASE IF EXISTS ${database} SYNC`, index, 'default');
}

/** A single server with rows, and two nodes without tables. */
beforeEach(async () => {
  for (const index of [0, 1, 2]) await dropDatabases(index);
  await applySql(accountOf(0));
  await read(FILL);
  await read(FILL_OVERRIDES);
}, START_MS);

it('a server becomes two shards and then three, with the same answers, and an interrupted run is completed', async () => {
  const inCluster = { ...accountOf(0), node: { cluster: 'playline_2', isHome: true } };
  await expect(applySql(inCluster)).rejects.toThrow('has the tables of a single server');
  const before = await readAll();
  for (const count of [2, 3]) {
    const targets = Array.from({ length: count }, (_, index) => accountOf(index));
    await reshard(targets, `playline_${count}`, silently);
    expect(await readAll()).toEqual(before);
    await expect(applySql(accountOf(0))).rejects.toThrow(`has the tables of cluster playline_${count}`);
    for (let index = 0; index < count; index++) {
      const [own = '0', foreign = '0'] = (
        await read(
          `SELECT count(), countIf(kafkaMurmurHash(if(identity_key = toFixedString('', 16), toString(message_id),
             concat(environment_id, identity_key))) % ${count} != ${index}) FROM events`,
          index,
        )
      ).split('\t');
      expect(Number(own)).toBeGreaterThan(ROWS / count / 2);
      expect(foreign).toBe('0');
      expect(await read('SELECT count() FROM identity_overrides FINAL', index)).toBe('50');
    }
  }
  // As if the last run had been interrupted after the first replaced partitions.
  await read("CREATE TABLE resharding (cluster String) ENGINE = MergeTree ORDER BY () COMMENT 'to playline_3'");
  for (let index = 0; index < 3; index++)
    for (const table of ['events', 'identity_days', 'identities', 'session_days'])
      await read(`CREATE TABLE ${table}_next CLONE AS ${table}`, index);
  await read('TRUNCATE TABLE events', 1);
  await expect(reshard(accountsOf(0, 1), 'playline_2', silently)).rejects.toThrow('again for cluster playline_3');
  await reshard(accountsOf(0, 1, 2), 'playline_3', silently);
  expect(await readAll()).toEqual(before);
});

it('a repeated run gives a new node the current grants and persons, also those changed during the run, and no person who was erased', async () => {
  const grant = (account: string, version: number, revoked = false, index = 0) =>
    read(`INSERT INTO analyst_grants VALUES ('${account}', 'game', ${revoked}, now64(3), ${version})`, index);
  await grant('analyst_1', 10);
  const interrupted = reshard(accountsOf(0, 1), 'playline_2', (line) => {
    if (line.endsWith('tables created')) throw new Error('interrupted by the test');
  });
  await expect(interrupted).rejects.toThrow('interrupted by the test');
  // The rows that a later interruption would have left.
  await read(FILL_OVERRIDES, 1);
  await grant('analyst_1', 10, false, 1);
  // With the previous settings: a revocation, an unlink and an erasure.
  await grant('analyst_1', 11, true);
  await read(
    `INSERT INTO identity_overrides (environment_id, identity_key, person_key, kind, linked_at, version)
     VALUES ('game', sipHash128(toUInt16(4)), sipHash128(toUInt16(4)), 'anonymous', now64(3), 1000)`,
  );
  const rows = openErasureRows(accountOf(0));
  const batch = newBatch();
  const countErased = async (index: number) => {
    const tables = ['events', 'identity_days', 'identities', 'identity_overrides'];
    const counts = tables.map((table) => read(`SELECT count() FROM ${table} WHERE identity_key = ${ERASED}`, index));
    return (await Promise.all(counts)).map(Number);
  };
  expect((await countErased(0)).every((count) => count > 0)).toBe(true);
  expect(await countErased(1)).toEqual([0, 0, 0, 1]);
  const key = Buffer.from(await read(`SELECT hex(${ERASED})`), 'hex');
  await rows.putTargets(batch, [{ environmentId: 'game', key, cutoffMs: Date.now() }]);
  await sweepAll(rows, batch);
  await rows.dropTargets(batch);
  await rows.close();
  const before = await readAll();
  await reshard(accountsOf(0, 1), 'playline_2', async (line) => {
    if (line.startsWith('identities: copied')) await grant('analyst_2', 1);
  });
  expect(await readAll()).toEqual(before);
  expect(
    await findNodeDifferences(
      accountsOf(0, 1).map((each) => createQueryRows(each)),
      silently,
    ),
  ).toEqual([]);
  for (const index of [0, 1]) {
    const grants = "SELECT account, revoked FROM analyst_grants FINAL WHERE account != 'analyst' ORDER BY account";
    expect(await read(grants, index)).toBe('analyst_1\ttrue\nanalyst_2\tfalse');
    expect(await countErased(index)).toEqual([0, 0, 0, 0]);
    expect(await read('SELECT count() FROM identity_overrides WHERE identity_key = person_key', index)).toBe('1');
  }
});

/** The settings of a service for a cluster of some nodes, or for a single server. */
function openService(cluster?: string, ...indexes: readonly number[]) {
  const urls = indexes.map((index) => nodes.urls[index]!);
  const faults = createConnectionFaults({ warn: () => {} });
  const account = {
    ...accountOf(0),
    user: 'writer',
    password: nodes.secrets.writerPassword,
    ...(cluster !== undefined && { cluster: { name: cluster, urls } }),
    onFault: faults.listenerOf('ClickHouse'),
  };
  const [store, rows] = [openEventStore(account), openErasureRows(account)];
  const close = () => Promise.all([store.close(), rows.close()]);
  return {
    store,
    rows,
    reason: () => faults.reasons().ClickHouse,
    [Symbol.asyncDispose]: async () => void (await close()),
  };
}
type Service = ReturnType<typeof openService>;

/** Reads a stored row of a node in the writer's format. */
async function readStored(index: number) {
  const columns = EVENT_TABLE_COLUMNS.events.map(({ name }) => name).join(', ');
  const [offset, row] = (
    await read(`SELECT kafka_offset, hex(formatRow('RowBinary', ${columns})) FROM events LIMIT 1`, index)
  ).split('\t');
  return { partition: 0, start: Number(offset), end: Number(offset) + 1, rows: [Buffer.from(row!, 'hex')] };
}

it('a writer and an eraser whose settings do not match the cluster store and prove nothing, are not ready, and report the setting', async () => {
  const target = { environmentId: 'game', key: Buffer.alloc(16, 9), cutoffMs: Date.now() };
  const batch = newBatch();
  const isReady = async ({ store, rows }: Service) => [await store.ready(), await rows.ready()];
  const refuse = async (service: Service, message: string) => {
    const { store, rows, reason } = service;
    const wrong = { name: 'StoreFault', code: 'WRONG_CLUSTER', message: expect.stringContaining(message) };
    const query = await readStored(1);
    await expect(store.storedOffsets('events', query)).rejects.toMatchObject(wrong);
    const block = { table: 'events', rows: query.rows[0]!, token: `wrong ${message}` } as const;
    await expect(store.insert({ ...block, signal: AbortSignal.timeout(START_MS) })).rejects.toMatchObject(wrong);
    await expect(rows.putTargets(newBatch(), [target])).rejects.toMatchObject(wrong);
    await expect(rows.findSurvivors(batch)).rejects.toMatchObject(wrong);
    await expect(rows.findOnDisk(batch)).rejects.toMatchObject(wrong);
    expect(await isReady(service)).toEqual([false, false]);
    expect(reason()).toContain(message);
  };
  await using single = openService();
  await single.rows.putTargets(batch, [target]);
  expect(await isReady(single)).toEqual([true, true]);
  await using early = openService('playline_2', 0, 1);
  expect(await isReady(early)).toEqual([false, false]);
  expect(early.reason()).toContain('CLICKHOUSE_CLUSTER is playline_2, but the tables belong to no cluster');
  await reshard(accountsOf(0, 1), 'playline_2', silently);
  await refuse(single, 'CLICKHOUSE_CLUSTER is not set, but the tables belong to cluster playline_2');
  expect(await isReady(early)).toEqual([true, true]);
  await reshard(accountsOf(0, 1, 2), 'playline_3', silently);
  await refuse(early, 'CLICKHOUSE_CLUSTER is playline_2, but the tables belong to cluster playline_3');
  await using fewer = openService('playline_3', 0, 1);
  await refuse(fewer, 'CLICKHOUSE_SHARD_URLS has 2 addresses, but cluster playline_3 has 3 shards');
  await using mixed = openService('playline_3', 0, 2, 1);
  await expect(mixed.rows.putTargets(newBatch(), [target])).rejects.toThrow('address 2 is shard 3 of cluster');
  await expect(mixed.store.storedOffsets('events', await readStored(1))).rejects.toThrow('address 2 is shard 3');
  expect(await isReady(mixed)).toEqual([false, false]);
  await using service = openService('playline_3', 0, 1, 2);
  expect(await isReady(service)).toEqual([true, true]);
  for (const index of [0, 1, 2]) {
    const query = await readStored(index);
    expect(await service.store.storedOffsets('events', query)).toEqual(new Set([query.start]));
  }
  expect(await service.rows.findSurvivors(batch)).toEqual([]);
});

it('inserts with the settings of a single server, also of grants, are refused while their rows would be lost', async () => {
  const before = await readAll();
  const change = { environmentId: 'game', revoked: true };
  const grants = 'SELECT account, environment_id, revoked FROM analyst_grants FINAL ORDER BY ALL';
  const granted = await read(grants);
  const refused: string[] = [];
  const refuse = async (insert: Promise<unknown>) => {
    await expect(insert).rejects.toThrow('npm run shards -- reshard has not completed');
    refused.push('refused');
  };
  await reshard(accountsOf(0, 1), 'playline_2', async (line) => {
    if (line.startsWith('events: copied')) await refuse(read(FILL));
    if (line.startsWith('switching')) await refuse(createAnalystStore(accountOf(0), []).setGrant('analyst_1', change));
  });
  expect(refused).toHaveLength(2);
  expect(await readAll()).toEqual(before);
  for (const index of [0, 1]) expect(await read(grants, index)).toBe(granted);
  const cluster = { name: 'playline_2', urls: nodes.urls.slice(0, 2) };
  await createAnalystStore({ ...accountOf(0), cluster }, []).setGrant('analyst_1', change);
  for (const index of [0, 1]) expect(await read(grants, index)).toBe(`${granted}\nanalyst_1\tgame\ttrue`);
  await read(FILL, 0, 'playline_all');
});

it('more parts than an insert may find are copied, and this limit of the tables remains', async () => {
  await reshard(accountsOf(0, 1), 'playline_2', silently);
  const before = await readAll();
  const limit = 'parts_to_throw_insert = 1';
  for (const index of [0, 1]) await read(`ALTER TABLE events MODIFY SETTING ${limit}`, index);
  await reshard(accountsOf(0, 1, 2), 'playline_3', silently);
  expect(await readAll()).toEqual(before);
  expect(await read('SHOW CREATE TABLE events')).toContain(limit);
});

interface Answer {
  readonly status: number;
  readonly body: string;
}

const toRows = (row: object): Answer => ({ status: 200, body: `${JSON.stringify(row)}\n` });

/** Forwards queries to a node, except those that are answered. */
async function openProxy(index: number, answer: (query: string) => Answer | null) {
  const server = createServer(async (request, response) => {
    const body = await text(request);
    const answered = answer(body);
    if (answered !== null) return void response.writeHead(answered.status).end(answered.body);
    const { authorization = '' } = request.headers;
    const url = nodes.urls[index]! + request.url;
    const forwarded = await fetch(url, { method: 'POST', headers: { authorization, connection: 'close' }, body });
    response.writeHead(forwarded.status).end(await forwarded.text());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const account = { ...accountOf(index), url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
  return { account, [Symbol.asyncDispose]: async () => void server.close() };
}

it('a run that fails before rows are replaced restores the previous cluster, and can be repeated', async () => {
  await reshard(accountsOf(0, 1), 'playline_2', silently);
  const before = await readAll();
  const lines: string[] = [];
  // Fails after the tables over all nodes were dropped and the table was emptied.
  let isFailed = false;
  await using failing = await openProxy(1, (query) => {
    if (isFailed || !query.startsWith('INSERT INTO playline.identity_overrides ')) return null;
    isFailed = true;
    return { status: 500, body: 'failed by the test' };
  });
  const targets = [accountOf(0), failing.account, accountOf(2)];
  await expect(reshard(targets, 'playline_3', (line) => void lines.push(line))).rejects.toThrow('failed by the test');
  expect(lines.at(-1)).toBe('the previous tables were restored');
  expect(await readAll()).toEqual(before);
  const queries = accountsOf(0, 1).map((each) => createQueryRows(each));
  expect(await findNodeDifferences(queries, silently)).toEqual([]);
  // Events are stored, and parts are merged.
  const stored = (await read('SELECT count() FROM events_exact')).split('\t')[0];
  await read(FILL, 0, 'playline_all');
  expect(Number(await read('SELECT count() FROM events_exact'))).toBe(Number(stored) + ROWS);
  for (const index of [0, 1]) {
    await read('OPTIMIZE TABLE events FINAL SETTINGS optimize_throw_if_noop = 1', index);
    expect(await read("SHOW TABLES LIKE '%\\_next'", index)).toBe('');
  }
  const filled = await readAll();
  await reshard(accountsOf(0, 1, 2), 'playline_3', silently);
  expect(await readAll()).toEqual(filled);
});

it('other nodes than those of the cluster, other columns, a full disk, an unknown account or foreign rows are refused before anything is changed', async () => {
  const tables = () =>
    read(
      `SELECT database, name, create_table_query FROM system.tables WHERE startsWith(database, 'playline') ORDER BY ALL`,
    );
  const before = await tables();
  const refuse = (indexes: readonly number[], cluster: string, message: string | RegExp) =>
    expect(reshard(accountsOf(...indexes), cluster, silently)).rejects.toThrow(message);
  await refuse([0, 1], 'playline_9', /cluster playline_9: .*not found/);
  await refuse([0, 1], 'playline_3', 'cluster playline_3 in remote_servers has the nodes');
  await refuse([0, 1, 2], 'playline_2', 'cluster playline_2 in remote_servers has the nodes');
  await refuse([0, 2, 1], 'playline_3', 'cluster playline_3 in remote_servers has the nodes');
  await refuse([1, 0], 'playline_2', 'cluster playline_2 in remote_servers has the nodes');
  await using home = await openProxy(0, (query) =>
    query.includes("storage != 'users_xml'") ? toRows({ name: 'analyst_0a1b2c3d' }) : null,
  );
  await expect(reshard([home.account, accountOf(1)], 'playline_2', silently)).rejects.toThrow(
    'accounts created with SQL are missing: analyst_0a1b2c3d',
  );
  await using full = await openProxy(1, (query) =>
    query.includes('system.disks') ? toRows({ rows: '0', bytes: '0', free: '1' }) : null,
  );
  await expect(reshard([accountOf(0), full.account], 'playline_2', silently)).rejects.toThrow(
    'has 1 bytes of free disk space',
  );
  await read(FILL, 1);
  await refuse([0, 1], 'playline_2', 'Add only empty nodes');
  for (const table of ['events', 'identity_days', 'identities', 'session_days'])
    await read(`TRUNCATE TABLE ${table}`, 1);
  expect(await tables()).toBe(before);
  await read('ALTER TABLE events ADD COLUMN property_level String');
  await refuse([0, 1], 'playline_2', 'property_level');
  await read('ALTER TABLE events DROP COLUMN property_level');
  expect(await tables()).toBe(before);
  await reshard(accountsOf(0, 1), 'playline_2', silently);
});
