import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createQueryRows, onEachNode } from '@playline/stores';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { type AnalystsEngine, openAnalystsEngine } from '../../infra/clickhouse/test/analysts-engine.ts';
import type { Backup } from '../../services/operator/src/backup/backup-store.ts';
import { createBackup } from '../../services/operator/src/backup/create-backup.ts';
import { openFolder } from '../../services/operator/src/backup/folder.ts';
import { finishErasures, loadBackup, planRestore } from '../../services/operator/src/backup/restore-backup.ts';
import { openTargets } from '../../services/operator/src/backup/test/targets.ts';
import { findNodeDifferences } from '../../services/operator/src/verify/nodes.ts';

const START_MS = 240_000;
/** One event every two minutes, so that the rows are in two months. */
const ROWS = 30_000;
let one: AnalystsEngine;
let two: AnalystsEngine;
beforeAll(async () => {
  [one, two] = await Promise.all([openAnalystsEngine(), openAnalystsEngine({ nodes: 2 })]);
  for (const statement of FILL) await two.runAsOperator(statement);
}, START_MS);
afterAll(() => Promise.all([one?.close(), two?.close()]), START_MS);

const TIME = "toDateTime64('2026-06-10 00:00:00', 3, 'UTC') + number * 120";
const FILL = [
  `INSERT INTO events (environment_id, type, event_name, event_time, received_at, message_id, identity_key, session_id,
      kafka_partition, kafka_offset)
    SELECT 'game', 'track', concat('event ', toString(number % 5)), ${TIME}, ${TIME}, generateUUIDv4(),
      if(number % 9 = 0, toFixedString('', 16), sipHash128(toUInt16(number % 700))), toString(number % 900), 0, number
    FROM numbers(${ROWS})`,
  `INSERT INTO identity_overrides (environment_id, identity_key, person_key, kind, linked_at, version)
    SELECT 'game', sipHash128(toUInt16(number)), sipHash128(toUInt16(number + 1)), 'anonymous', now64(3), number
    FROM numbers(0, 100, 2)`,
  `INSERT INTO consent_log (environment_id, identity_key, status, received_at, kafka_partition, kafka_offset)
    SELECT 'game', sipHash128(toUInt16(number)), 'full', now64(3), 0, number FROM numbers(50)`,
  `INSERT INTO audit_log (project_id, happened_at, entry_id, kind, object, revision, detail)
    VALUES ('game', now64(3), 'project', 'project', 'game', 1, '{"environments":[{"id":"game"}],"timeZone":"Asia/Tokyo"}')`,
];
const QUERIES = [
  'SELECT count(), uniqExact(kafka_offset), sum(cityHash64(message_id)) FROM events_exact',
  'SELECT count(), uniqExact(person_key) FROM person_days',
  'SELECT count(), min(first_seen_at), max(last_seen_at) FROM persons',
  "SELECT count(), sum(events) FROM sessions_between(environment = 'game', since = '2026-06-01', until = '2026-08-30')",
  'SELECT count(), sum(cityHash64(identity_key)) FROM consent_log',
  'SELECT count(), groupUniqArray(time_zone) FROM environment_settings',
];

async function readAll({ query }: AnalystsEngine): Promise<string[]> {
  const answers = await Promise.all(QUERIES.map((sql) => query('operator', sql)));
  return answers.map(({ text }) => text);
}

async function openFixture(engine: AnalystsEngine) {
  const targets = openTargets(engine.accountOf('operator'));
  const folder = await mkdtemp(join(tmpdir(), 'playline-backups-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return { targets, store: openFolder(folder) };
}

/** Restores a backup up to the erasures, so that reads are still refused. @returns how to finish the restore */
async function copy(from: AnalystsEngine, to: AnalystsEngine) {
  const { targets: sources, store } = await openFixture(from);
  await createBackup(sources, store);
  const chosen = await store.open((await store.list())[0] ?? '');
  const { targets } = await openFixture(to);
  const source = { chosen, newest: chosen };
  const { log } = await planRestore(targets, source);
  await loadBackup(targets, source, log);
  return { finish: () => finishErasures(targets) };
}

it('a backup of two shards is restored on one server, and one of this server on the shards, with all rows', async () => {
  const before = await readAll(two);
  await (await copy(two, one)).finish();
  expect(await readAll(one)).toEqual(before);
  await (await copy(one, two)).finish();
  expect(await readAll(two)).toEqual(before);
  const nodes = onEachNode(two.accountOf('operator')).map((node) => createQueryRows(node));
  expect(await findNodeDifferences(nodes, () => {})).toEqual([]);
});

it('while a cluster is restored, each node refuses readers, and services read the rows of all nodes', async () => {
  const { finish } = await copy(two, two);
  const count = 'SELECT count() FROM events_exact';
  const gate = "SELECT comment FROM system.tables WHERE database = 'playline' AND name = 'readable_environments'";
  expect(await two.query('analyst', count)).toMatchObject({ ok: false, text: expect.stringContaining('are refused') });
  for (const node of two.nodes) expect(await node.runAsOperator(gate)).toContain('Reads are refused');
  expect((await two.query('writer', count)).text.trim()).toBe(String(ROWS));
  await finish();
  for (const node of two.nodes) expect(await node.runAsOperator(gate)).not.toContain('Reads are refused');
  expect((await two.query('analyst', count)).text.trim()).toBe(String(ROWS));
});

it('a backup with property columns is not restored on a cluster, because the columns would be missing', async () => {
  const { targets } = await openFixture(two);
  const rows = await targets.client.read('SELECT name, checksum FROM applied_sql_files');
  const propertyColumns = [{ name: 'property_coins', statement: '' }];
  const backup = { manifest: { schema: Object.fromEntries(rows), propertyColumns, secrets: [] } } as unknown as Backup;
  await expect(planRestore(targets, { chosen: backup, newest: backup })).rejects.toThrow(
    'has property columns (property_coins), which a cluster of ClickHouse does not support',
  );
});
