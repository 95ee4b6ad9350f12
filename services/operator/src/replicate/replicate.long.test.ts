import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bareEnvironment, type OwnStores, openOwnStores } from '@playline/testkit';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { EXIT } from '../command.ts';
import { runMain } from '../test/run-main.ts';
import { runProgram } from '../test/run-program.ts';
import { CHAIN, type FakeHistory, latestVersions, openFakeHistory } from './test/open-history.ts';

const MAIN = new URL('../main.ts', import.meta.url).pathname;

let stores: OwnStores;
beforeAll(async () => {
  stores = await openOwnStores();
});
afterAll(() => stores.close());

let folder: string;
let history: FakeHistory;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'replicate-test-'));
  history = await openFakeHistory();
  history.put(...Array.from({ length: 40 }, (_, number) => number));
});
afterEach(async () => {
  await history.close();
  rmSync(folder, { recursive: true, force: true });
});

const argsOf = (to: string, ...more: string[]) => [
  ...['replicate', '--chain', CHAIN, '--url', history.url, '--to', to, '--page-size', '3'],
  ...more,
];
const toState = () => ['--state', join(folder, 'state.json')];

async function killAt(page: number, args: readonly string[]): Promise<void> {
  const env = { ...bareEnvironment(), ...stores.environment };
  const child = spawn(process.execPath, [MAIN, ...args], { env, cwd: folder, stdio: 'ignore' });
  const first = history.requested.length;
  history.beforeResponse = () => {
    if (history.requested.length - first === page) child.kill('SIGKILL');
  };
  await once(child, 'exit');
  history.beforeResponse = () => {};
}

it('replicate to a file writes every activity once, even if the command is killed twice and run again', async () => {
  const args = argsOf('file', '--out', join(folder, 'copy.ndjson'), ...toState());
  await killAt(3, args);
  await killAt(5, args);
  const done = await runMain({}, [...args, '--json']);
  expect(done.code).toBe(EXIT.ok);
  expect(JSON.parse(done.out)).toMatchObject({ upTo: history.versions.at(-1)!.updated_at });
  const lines = readFileSync(join(folder, 'copy.ndjson'), 'utf8').trim().split('\n');
  expect(lines.map((line) => JSON.parse(line))).toEqual(history.versions);
});

it('replicate to ClickHouse yields the complete history with FINAL, even if it is killed, resumed and repeated', async () => {
  const args = argsOf('clickhouse', '--table', 'copy', ...toState());
  await killAt(4, args);
  expect((await runProgram(stores.environment, args)).code).toBe(EXIT.ok);
  history.put(1, 2, 3, 99);
  // Without a state file, all versions are written again, including versions older than the stored versions.
  rmSync(join(folder, 'state.json'));
  expect((await runProgram(stores.environment, args)).code).toBe(EXIT.ok);
  const rows = await stores.query(
    'SELECT toString(id) AS id, toString(updated_at) AS at, details, blockchain_metadata, chain FROM copy FINAL FORMAT JSONEachRow',
  );
  const rowsInTable = rows.split('\n').map((row) => JSON.parse(row));
  const expected = [...latestVersions(history.versions).values()] as typeof history.versions;
  expect(new Map(rowsInTable.map((row) => [row.id, row]))).toEqual(
    new Map(
      expected.map(({ id, updated_at, details }) => [
        id,
        {
          id,
          chain: CHAIN,
          details: JSON.stringify(details),
          blockchain_metadata: 'null',
          at: updated_at.replace('T', ' ').replace('Z', ''),
        },
      ]),
    ),
  );
});

it('replicate to ClickHouse refuses to resume if the table was dropped, emptied or replaced', async () => {
  const args = (table: string) => argsOf('clickhouse', '--table', table, ...toState());
  const run = (table: string) => runProgram(stores.environment, args(table));
  expect((await run('first')).code).toBe(EXIT.ok);
  expect(await run('second')).toMatchObject({
    code: EXIT.failed,
    err: expect.stringContaining('the state of a copy to'),
  });
  await stores.query('TRUNCATE TABLE first');
  expect(await run('first')).toMatchObject({ code: EXIT.failed, err: expect.stringContaining('is older than') });
  await stores.query('DROP TABLE first');
  expect(await run('first')).toMatchObject({ code: EXIT.failed, err: expect.stringContaining('is older than') });
});

it('replicate to standard output prints only activities, and prints messages to standard error', async () => {
  const { code, out, err } = await runMain({}, argsOf('stdout'));
  expect(code).toBe(EXIT.ok);
  expect(
    out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toEqual(history.versions);
  expect(err).toContain('40 activities in 14 pages');
});

it('replicate exits with code 1 and a message without a stack trace if the reader of its output exits', async () => {
  const child = spawn(process.execPath, [MAIN, ...argsOf('stdout')], { env: bareEnvironment(), cwd: folder });
  const printed: Buffer[] = [];
  child.stderr.on('data', (chunk: Buffer) => printed.push(chunk));
  child.stdout.once('data', () => child.stdout.destroy());
  expect((await once(child, 'close'))[0]).toBe(EXIT.failed);
  expect(String(Buffer.concat(printed))).toContain('standard output was closed by its reader');
  expect(String(Buffer.concat(printed))).not.toContain('node:');
});
