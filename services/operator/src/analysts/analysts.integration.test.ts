import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Stack, startStack } from '@playline/infra/local';
import { createTables } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createAnalystsCommand } from '../commands/analysts.ts';
import { runInProcess } from '../test/run-in-process.ts';

/** Starting four stores can be slow on a busy machine. */
const START_MS = 180_000;
const folder = mkdtempSync(join(tmpdir(), 'operator-analysts-'));
const directory = join(folder, '.playline');
let stack: Stack;

beforeAll(async () => {
  stack = await startStack({ directory, services: [] });
  await createTables(stack.file.clickhouse);
}, START_MS);
afterAll(async () => {
  await stack?.stop();
  rmSync(folder, { recursive: true, force: true });
}, START_MS);

/** @param answer to confirmation prompts; without it, there is no terminal */
async function run(args: string, answer?: string) {
  const prompts: string[] = [];
  const prompt = async (text: string) => {
    prompts.push(text);
    return answer ?? '';
  };
  const command = createAnalystsCommand({ clickhouse: () => stack.file.clickhouse, folder, environment: {} });
  const printed = await runInProcess(
    [command],
    ['analysts', ...args.split(' ')],
    answer === undefined ? {} : { prompt },
  );
  return { ...printed, progress: [...prompts, printed.progress].join('\n') };
}

async function created(args: string): Promise<{ account: string; password: string }> {
  const { code, results, progress } = await run(`create ${args} --json`);
  expect([code, progress.includes('Code:')]).toEqual([0, false]);
  return JSON.parse(results[0] ?? '');
}

async function query({ account, password }: { account: string; password: string }, sql: string) {
  const headers = { 'x-clickhouse-user': account, 'x-clickhouse-key': password };
  const result = await fetch(`${stack.file.clickhouse.url}/?database=playline`, { method: 'POST', headers, body: sql });
  return (await result.text()).trim();
}

const operate = (sql: string) => query({ account: 'operator', password: stack.file.clickhouse.password }, sql);
const listed = async () => (await run('list --json')).results.map((line) => JSON.parse(line));

async function store(environmentId: string) {
  const columns = 'environment_id, type, event_name, event_time, received_at, message_id, user_id';
  await operate(
    `INSERT INTO events (${columns}) SELECT '${environmentId}', 'track', 'one', now64(3), now64(3), generateUUIDv4(), 'player'`,
  );
}

it('analysts create, grant and drop change which environments an account can read', async () => {
  await Promise.all(['demo-production', 'demo-development'].map(store));
  const analyst = await created('--environment production');
  const seen = () => query(analyst, 'SELECT DISTINCT environment_id FROM analysis_events ORDER BY 1');
  expect(await seen()).toBe('demo-production');
  expect((await run(`grant --account ${analyst.account} --environment development`)).code).toBe(0);
  expect(await seen()).toBe('demo-development\ndemo-production');
  expect(await listed()).toContainEqual({
    account: analyst.account,
    environments: ['demo-development', 'demo-production'],
    rawIds: false,
    since: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
  });
  const dropped = await run(`drop --account ${analyst.account}`, 'yes');
  expect(dropped.progress).toContain(`${analyst.account} can read demo-development, demo-production.`);
  expect(dropped.results[0]).toMatch(/^All grants of \S+ were revoked. To make the account available again/);
  expect(await seen()).toBe('');
  expect((await listed()).map(({ account }) => account)).not.toContain(analyst.account);
  expect(existsSync(join(directory, 'dropped-accounts', analyst.account))).toBe(true);
  const repeated = await run(`grant --account ${analyst.account} --environment production`);
  expect([repeated.code, repeated.progress]).toEqual([1, expect.stringContaining('was dropped')]);
  expect(await seen()).toBe('');
});

it('only accounts that were created with --raw-ids can read raw ids', async () => {
  const [without, raw] = [
    await created('--environment production'),
    await created('--environment production --raw-ids'),
  ];
  const sql = 'SELECT user_id FROM analysis_events_raw LIMIT 1';
  expect(await query(raw, sql)).toBe('player');
  expect(await query(without, sql)).toContain('Not enough privileges');
  expect((await run('list')).results).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^analyst {2}all environments {2}with raw ids {2}since /),
      expect.stringMatching(new RegExp(`^${raw.account} {2}demo-production {2}with raw ids {2}since `)),
      expect.stringMatching(new RegExp(`^${without.account} {2}demo-production {2}without raw ids {2}since `)),
    ]),
  );
});

it('analysts create assigns each account once and never a dropped account, and fails if no account is free', {
  timeout: 60_000,
}, async () => {
  const before = (await created('--all-environments')).account;
  await run(`drop --account ${before} --yes`);
  const many = await Promise.all(Array.from({ length: 4 }, () => run('create --environment production --json')));
  const rest: typeof many = [];
  for (let code = 0; code === 0; code = rest.at(-1)?.code ?? 1)
    rest.push(await run('create --environment production --json'));
  const names = [...many, ...rest]
    .filter(({ code }) => code === 0)
    .map(({ results }) => JSON.parse(results[0] ?? '').account);
  expect(names.length).toBeGreaterThan(0);
  expect(new Set(names).size).toBe(names.length);
  expect(names).not.toContain(before);
  expect(rest.at(-1)).toMatchObject({
    code: 1,
    progress: expect.stringMatching(/all 8 accounts without raw ids are assigned.*drop an unused/s),
  });
});

it('analysts create prints a password once, and no list, log, record or table contains the password', async () => {
  const analyst = await created('--environment production --raw-ids');
  const { code, results, progress } = await run('create --environment production --raw-ids');
  const [sentence = '', password = ''] = results.join('\n').split('\n');
  expect([code, progress, sentence]).toEqual([0, '', expect.stringContaining('Password (shown only once):')]);
  const outputs = [
    await run('list'),
    await run('list --json'),
    await run(`grant --account ${analyst.account} --environment production`),
  ];
  const tables = ['analyst_accounts', 'analyst_grants', 'system.users', 'system.query_log', 'system.processes'];
  await operate('SYSTEM FLUSH LOGS');
  const stored = await Promise.all(tables.map((table) => operate(`SELECT * FROM ${table}`)));
  const logs = readdirSync(join(directory, 'logs')).map((name) => readFileSync(join(directory, 'logs', name), 'utf8'));
  expect([stored.length, logs.length > 0]).toEqual([tables.length, true]);
  const everything = [JSON.stringify(outputs), ...stored, ...logs, readFileSync(join(directory, 'stack.json'), 'utf8')];
  for (const secret of [password, analyst.password]) {
    expect(secret).toMatch(/^[0-9a-f]{64}$/);
    for (const text of everything) expect(text.includes(secret)).toBe(false);
  }
});

it('analysts drop requires confirmation, and refuses accounts that are not analyst accounts', async () => {
  expect((await run('drop --account analyst', 'no')).code).toBe(1);
  expect(await run('drop --account analyst')).toMatchObject({
    code: 2,
    progress: expect.stringContaining('use --yes'),
  });
  expect((await listed()).map(({ account }) => account)).toContain('analyst');
  for (const args of ['drop --yes', 'grant --environment production'])
    for (const account of ['unknown', 'operator', 'views', 'reader']) {
      const { code, progress } = await run(`${args} --account ${account}`);
      expect([code, progress]).toEqual([1, expect.stringContaining(`analyst account ${account} does not exist`)]);
    }
});

it('analysts drop and grant also change the built-in analyst account', async () => {
  const { analystPassword: password } = JSON.parse(readFileSync(join(directory, 'secrets.json'), 'utf8'));
  const count = () => query({ account: 'analyst', password }, 'SELECT count() > 0 FROM analysis_events');
  expect(await count()).toBe('1');
  expect((await run('drop --account analyst --yes')).code).toBe(0);
  expect(await count()).toBe('0');
  expect((await run('grant --account analyst --all-environments')).code).toBe(0);
  expect(await count()).toBe('1');
});
