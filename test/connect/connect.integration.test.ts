import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { disableAccount, setRole } from '@playline/access-keys';
import { until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { markDroppedAccounts } from '../../infra/local/dropped-accounts.ts';
import { stackPathsOf } from '../../infra/local/paths.ts';
import { droppedAccountsOf } from '../../infra/local/secrets.ts';
import { AUTHOR, type ConnectedPortal, openConnectedPortal } from './connected-portal.ts';

const START_MS = 120_000;
let world: ConnectedPortal;
beforeAll(async () => {
  world = await openConnectedPortal();
}, START_MS);
afterAll(() => world?.close(), START_MS);

const ENVIRONMENTS = 'SELECT DISTINCT environment_id FROM analysis_events ORDER BY 1';
const RAW = 'SELECT DISTINCT user_id FROM analysis_events_raw';

it('the curl snippet of the Connect page runs as printed with the password that the page shows', async () => {
  const { snippets, password } = await world.createCredentials('analyst');
  expect(Object.keys(snippets)).toEqual(['curl', 'Python', 'R', 'Grafana', 'Metabase', 'Superset', 'dbt']);
  const env = { ...process.env, CLICKHOUSE_PASSWORD: password };
  const { stdout } = await promisify(execFile)('bash', ['-c', snippets.curl ?? ''], { env });
  expect(stdout).toBe('event_name\tevents\nlevel_started\t5\n');
});

it('credentials read all environments of the project, and raw ids only if a developer includes them', async () => {
  const { createCredentials, query } = world;
  const [without, raw] = [await createCredentials('developer'), await createCredentials('developer', true)];
  for (const each of [without, raw]) expect(await query(each, ENVIRONMENTS)).toBe('game-development\ngame-production');
  expect(await query(raw, RAW)).toBe('player');
  expect(await query(without, RAW)).toContain('Not enough privileges');
});

it('credentials follow a change of role within seconds, also if it was made while no portal was running', async () => {
  const { createCredentials, query, portal, project, follow, store } = world;
  const [raw, other] = [await createCredentials('developer', true), await createCredentials('developer')];
  const context = { store: portal.parts.accounts.storeFor(AUTHOR), sessions: portal.parts.sessions, actorId: null };
  await setRole(context, { accountId: raw.accountId, projectId: project.id, role: 'analyst' });
  const follower = follow();
  await until('raw ids are gone', async () => (await query(raw, RAW)) === '');
  await setRole(context, { accountId: raw.accountId, projectId: project.id, role: 'developer' });
  await until('raw ids are back', async () => (await query(raw, RAW)) === 'player');
  await disableAccount(context, other.accountId);
  await until(
    'the credentials are dropped',
    async () => !(await store.list()).some(({ account }) => account === other.user),
  );
  expect(await query(other, ENVIRONMENTS)).toBe('');
  await follower.close();
});

it('a stop of the local stack marks the accounts of revoked credentials, whose passwords the next start changes', async () => {
  const { createCredentials, store, engine } = world;
  const [revoked, kept] = [await createCredentials('analyst'), await createCredentials('analyst')];
  await store.drop(revoked.user);
  const folder = mkdtempSync(join(tmpdir(), 'connect-stack-'));
  const paths = stackPathsOf(folder);
  await markDroppedAccounts(paths, { clickhouse: engine.accountOf('operator') });
  const marked = readdirSync(droppedAccountsOf(paths));
  rmSync(folder, { recursive: true, force: true });
  expect([marked.includes(revoked.user), marked.includes(kept.user)]).toEqual([true, false]);
});

it('the account that creates credentials can create only analyst accounts, and pass on only the roles of analysts', async () => {
  const respond = async (sql: string) =>
    (await world.engine.query('accounts', sql)).text.match(/\((\w+)\) \(version/)?.[1];
  const denied = [
    'CREATE USER mallory',
    'DROP USER writer',
    'ALTER USER operator IDENTIFIED WITH no_password',
    'ALTER USER analyst_1 IDENTIFIED WITH no_password',
    'GRANT SELECT ON playline.events TO analyst_1',
    'GRANT ALL ON *.* TO analyst_1',
    'CREATE ROW POLICY mine ON playline.events USING 1 TO analyst_1',
    'CREATE SETTINGS PROFILE mine',
    'SELECT * FROM events',
    'SELECT * FROM identity_links',
    "INSERT INTO events (environment_id) VALUES ('x')",
    'ALTER TABLE analyst_grants DELETE WHERE 1',
  ];
  for (const sql of denied) expect([sql, await respond(sql)]).toEqual([sql, 'ACCESS_DENIED']);
  // The engine stores no accounts, so these statements fail after the check of the rights.
  const allowed = {
    "CREATE USER analyst_0a1b2c3d SETTINGS PROFILE 'analyst'": 'ACCESS_STORAGE_FOR_INSERTION_NOT_FOUND',
    'CREATE QUOTA analyst_0a1b2c3d KEYED BY user_name FOR INTERVAL 10 SECOND MAX result_rows = 1 TO analyst_1':
      'ACCESS_STORAGE_FOR_INSERTION_NOT_FOUND',
    'GRANT reads_views, reads_raw_ids TO analyst_1': 'ACCESS_STORAGE_READONLY',
    'DROP USER IF EXISTS analyst_1': 'ACCESS_STORAGE_READONLY',
  };
  for (const [sql, code] of Object.entries(allowed)) expect([sql, await respond(sql)]).toEqual([sql, code]);
});
