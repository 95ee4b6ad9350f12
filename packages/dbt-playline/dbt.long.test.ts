import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type OwnDatabase, openOwnDatabase } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';

const PACKAGE = import.meta.dirname;
const STATE = join(PACKAGE, '../../.playline/dbt');
const INSTALL_MS = 300_000;
const BUILD_MS = 120_000;
const DAY_MS = 86_400_000;
const run = promisify(execFile);

let database: OwnDatabase;
let folder = '';
const models = () => `${database.target.database}_models`;

beforeAll(async () => {
  mkdirSync(STATE, { recursive: true });
  folder = mkdtempSync(join(STATE, 'run-'));
  const environment = join(STATE, 'environment');
  await run('python3', ['-m', 'venv', environment]);
  await run(join(environment, 'bin/pip'), ['install', '--quiet', '-r', join(PACKAGE, 'requirements.txt')]);
  database = await openOwnDatabase();
  const { url, user, password } = database.target;
  const { hostname, port } = new URL(url);
  const output = {
    type: 'clickhouse',
    host: hostname,
    port: Number(port),
    user,
    password,
    schema: models(),
    threads: 2,
  };
  writeFileSync(
    join(folder, 'profiles.yml'),
    JSON.stringify({ playline: { target: 'test', outputs: { test: output } } }),
  );
}, INSTALL_MS);
afterAll(async () => {
  await database?.query(`DROP DATABASE IF EXISTS ${models()} SYNC`);
  await database?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs the models and the tests of sources and models. @throws Error with the output if one fails */
async function build(): Promise<string> {
  const vars = JSON.stringify({ playline_database: database.target.database });
  const folders = ['--project-dir', PACKAGE, '--profiles-dir', folder, '--target-path', folder, '--log-path', folder];
  const env = { ...process.env, DBT_SEND_ANONYMOUS_USAGE_STATS: 'false', DBT_USE_COLORS: 'false' };
  const program = join(STATE, 'environment/bin/dbt');
  const result = await run(program, ['build', ...folders, '--vars', vars], { env }).catch(
    (fault: { stdout: string }) => {
      throw new Error(fault.stdout);
    },
  );
  return result.stdout;
}

const time = (ms: number) => new Date(ms).toISOString().replace(/[TZ]/g, ' ').trim();
const insertEvent = (person: number, ageDays: number) => {
  const at = time(Date.now() - ageDays * DAY_MS);
  const event = {
    type: 'track',
    event_name: 'win',
    event_time: at,
    received_at: at,
    session_id: `${person}-${ageDays}`,
  };
  const owner = { environment_id: 'demo', message_id: randomUUID(), identity_key: Buffer.alloc(16, person).toString() };
  return database.query(`INSERT INTO events FORMAT JSONEachRow ${JSON.stringify({ ...event, ...owner })}`);
};
const readPlayers = () =>
  database.query(
    `SELECT dateDiff('day', day, today()) AS age, players, new_players FROM ${models()}.daily_players ORDER BY age`,
  );

it('dbt builds every model, and a second run adds late events and keeps old days', {
  timeout: 2 * BUILD_MS,
}, async () => {
  await database.query("INSERT INTO environment_settings VALUES ('demo', 'UTC', [], 1)");
  await database.query(
    "INSERT INTO message_rejections (environment_id, code, field, received_at) VALUES ('demo', 'FIELD_MISSING', 'x', now64(3))",
  );
  for (const [person, ageDays] of [
    [1, 60],
    [1, 5],
    [2, 5],
    [2, 0],
  ] as const)
    await insertEvent(person, ageDays);
  expect(await build()).toMatch(/PASS=28 WARN=0 ERROR=0/);
  expect(await readPlayers()).toBe('0\t1\t0\n5\t2\t1\n60\t1\t1');
  // An old day is not computed again, so this late event does not change it.
  for (const [person, ageDays] of [
    [3, 60],
    [3, 5],
    [1, 0],
  ] as const)
    await insertEvent(person, ageDays);
  expect(await build()).toMatch(/PASS=28 WARN=0 ERROR=0/);
  expect(await readPlayers()).toBe('0\t2\t0\n5\t3\t1\n60\t1\t1');
  const sums = `SELECT (SELECT sum(events) FROM ${models()}.daily_events), (SELECT sum(sessions) FROM ${models()}.daily_sessions),
    (SELECT sum(rejections) FROM ${models()}.daily_rejections), (SELECT sumIf(players, week = 0) FROM ${models()}.weekly_retention)`;
  expect(await database.query(sums)).toBe('6\t6\t1\t2');
});
