import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ConnectedPortal, openConnectedPortal } from './connected-portal.ts';

const run = promisify(execFile);
/** Includes the installation of the driver. */
const START_MS = 300_000;
const folder = mkdtempSync(join(tmpdir(), 'connect-python-'));
const python = join(folder, 'bin', 'python');
let world: ConnectedPortal;
beforeAll(async () => {
  await run('python3', ['-m', 'venv', folder]);
  await run(python, ['-m', 'pip', 'install', '--quiet', 'clickhouse-connect[sqlalchemy]==1.12.0']);
  world = await openConnectedPortal();
}, START_MS);
afterAll(async () => {
  await world?.close();
  rmSync(folder, { recursive: true, force: true });
}, START_MS);

it('the Python snippet and the address for Superset of the Connect page work as printed', async () => {
  const { snippets, password } = await world.createCredentials('analyst');
  const env = { ...process.env, CLICKHOUSE_PASSWORD: password };
  const { stdout } = await run(python, ['-c', snippets.Python ?? ''], { env });
  expect(stdout).toBe('level_started 5\n');
  const uri = snippets.Superset?.split('\n').at(-1)?.replace('PASSWORD', password) ?? '';
  const script = `import sqlalchemy, sys
print(sqlalchemy.create_engine(sys.argv[1]).connect().exec_driver_sql('SELECT count() FROM analysis_events').scalar())`;
  expect((await run(python, ['-c', script, uri])).stdout).toBe('10\n');
});
