import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { runStatement } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { applySql, dropForNodes } from '../../infra/clickhouse/apply.ts';
import { type Nodes, openNodes } from '../../infra/clickhouse/test/open-nodes.ts';

const START_MS = 120_000;
let nodes: Nodes;
let folder: string;
beforeAll(async () => {
  nodes = await openNodes({ nodes: 2 });
  folder = mkdtempSync(join(tmpdir(), 'sql-'));
}, START_MS);
afterAll(async () => {
  await nodes?.close();
  rmSync(folder, { recursive: true });
}, START_MS);

const accountOf = (index: number, database = 'playline') => ({
  url: nodes.urls[index]!,
  user: 'operator',
  password: nodes.secrets.operatorPassword,
  database,
});
const read = (sql: string, { index = 0, database = 'playline' } = {}) => runStatement(accountOf(index, database), sql);

const COLUMN = "level UInt32 COMMENT 'Level of the player'";
const TABLE = `CREATE TABLE IF NOT EXISTS levels (level UInt32 COMMENT 'Level') ENGINE = {{engine MergeTree}} ORDER BY level;
INSERT INTO levels SELECT 7 WHERE NOT EXISTS (SELECT 1 FROM levels);`;
const VIEW = `CREATE VIEW IF NOT EXISTS {{rows}}.events_of_levels DEFINER = views SQL SECURITY DEFINER AS
SELECT environment_id, level FROM events COMMENT 'Levels';
ALTER TABLE {{rows}}.events_of_levels {{comments of events}};`;

/** A release whose migration adds a column, a table and a view of rows. */
function createRelease() {
  cpSync(new URL('../../infra/clickhouse/schema/', import.meta.url), join(folder, 'schema'), { recursive: true });
  const events = join(folder, 'schema/02-events.sql');
  const added = readFileSync(events, 'utf8').replace('    session_id String', `    ${COLUMN},\n    session_id String`);
  writeFileSync(events, added);
  writeFileSync(join(folder, 'schema/40-levels.sql'), `${TABLE}\n${VIEW}\n`);
  cpSync(new URL('../../infra/clickhouse/migrations/', import.meta.url), join(folder, 'migrations'), {
    recursive: true,
  });
  writeFileSync(
    join(folder, 'migrations/9999-levels.sql'),
    `ALTER TABLE events ADD COLUMN IF NOT EXISTS ${COLUMN} AFTER device_id;
DROP VIEW IF EXISTS events_exact;
DROP VIEW IF EXISTS {{rows}}.events_of_levels;
${TABLE}
${VIEW}
`,
  );
  return { schema: pathToFileURL(`${folder}/schema/`), migrations: pathToFileURL(`${folder}/migrations/`) };
}

const insertEvents = (columns: string, values: string) =>
  read(
    `INSERT INTO events (environment_id, type, event_time, received_at, message_id, identity_key, ${columns})
     SELECT 'game', 'track', now64(3), now64(3), generateUUIDv4(), sipHash128(toUInt16(number)), ${values} FROM numbers(100)`,
    { database: 'playline_all' },
  );

it('a migration adds a column, a table and a view to all nodes of a cluster, while the running release writes', async () => {
  const folders = createRelease();
  const migrate = (index: number) =>
    applySql({ ...accountOf(index), folders, node: { cluster: nodes.cluster!, isHome: index === 0 } });
  expect(await migrate(1)).toEqual(['migrations/9999-levels.sql']);
  await insertEvents('session_id', "'old'");
  expect(await read('SELECT count() FROM events_exact')).toBe('100');
  // As if the home had been interrupted.
  await dropForNodes(accountOf(0));
  expect(await migrate(0)).toEqual(['migrations/9999-levels.sql']);
  for (const index of [0, 1]) expect(await migrate(index)).toEqual([]);

  await insertEvents('level', '3');
  const exact = 'SELECT count(), sum(level), uniqExact(_shard_num) FROM events_exact';
  expect(await read(exact)).toBe('200\t300\t2');
  expect(await read('SELECT count(), sum(level), uniqExact(_shard_num) FROM events_of_levels')).toBe('200\t300\t2');
  expect(await read('SELECT sum(level) FROM rows_of_events', { database: 'playline_all' })).toBe('300');
  await read('INSERT INTO levels VALUES (5)', { database: 'playline_all', index: 1 });
  expect(await read('SELECT groupArray(level) FROM (SELECT * FROM levels ORDER BY level)')).toBe('[5,7]');
});
