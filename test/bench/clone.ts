import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from './processes.ts';

/** Downloads of a start and what is built from them, so that the measurement does not depend on the network. */
const DOWNLOADS = ['node', 'npm-cache', 'kafka', 'registry', 'java'];

/** Makes a fresh clone of the last commit with the downloads of this checkout. `close` stops its stack and deletes it. */
export async function openClone() {
  const parent = mkdtempSync(join(tmpdir(), 'playline-bench-clone-'));
  const folder = join(parent, 'clone');
  const startMs = performance.now();
  await run('git', ['clone', '--quiet', ROOT, folder], parent);
  const seconds = (performance.now() - startMs) / 1000;
  for (const name of DOWNLOADS) {
    const from = join(ROOT, '.playline', name);
    if (existsSync(from)) cpSync(from, join(folder, '.playline', name), { recursive: true });
  }
  /** Runs a command of the local stack in the clone, as `npm run` does. @throws Error when it fails */
  const command = (name: string): Promise<void> =>
    run(process.execPath, [join('infra', 'local', 'bootstrap.mjs'), name], folder);
  const close = () => command('down').finally(() => rmSync(parent, { recursive: true, force: true }));
  return { folder, seconds, command, close };
}

/** Settings of this process must not reach the clone, which has its own ports and addresses. */
async function run(program: string, args: string[], folder: string): Promise<void> {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('PLAYLINE_')));
  env.PATH = `${dirname(process.execPath)}:${env.PATH}`;
  await promisify(execFile)(program, args, { cwd: folder, env });
}
