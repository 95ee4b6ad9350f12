import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/**
 * Downloads of a start and what it builds from them once. With these the measurement does not depend on the network.
 */
const DOWNLOADS = ['node', 'npm-cache', 'kafka', 'registry', 'java'];

/** A fresh clone of the last commit, with the downloads of this checkout. */
export interface Clone {
  readonly folder: string;
  /** Duration of `git clone` in seconds. */
  readonly seconds: number;
  /** Runs a command of the local stack in the clone, as `npm run` does. @throws Error when it fails */
  command(name: string): Promise<void>;
  /** Stops the clone's stack and deletes the clone. */
  close(): Promise<void>;
}

/** Makes a clone in a separate folder. */
export async function openClone(): Promise<Clone> {
  const parent = mkdtempSync(join(tmpdir(), 'playline-bench-clone-'));
  const folder = join(parent, 'clone');
  const startMs = performance.now();
  await run('git', ['clone', '--quiet', ROOT, folder], parent);
  const seconds = (performance.now() - startMs) / 1000;
  for (const name of DOWNLOADS) {
    const from = join(ROOT, '.playline', name);
    if (existsSync(from)) cpSync(from, join(folder, '.playline', name), { recursive: true });
  }
  const command = (name: string) => run(process.execPath, [join('infra', 'local', 'bootstrap.mjs'), name], folder);
  return {
    folder,
    seconds,
    command,
    close: async () => {
      try {
        await command('down');
      } finally {
        rmSync(parent, { recursive: true, force: true });
      }
    },
  };
}

/** Settings of this process must not reach the clone, which has its own ports and addresses. */
async function run(program: string, args: string[], folder: string): Promise<void> {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('PLAYLINE_'));
  const env = Object.fromEntries(kept);
  env.PATH = `${dirname(process.execPath)}:${env.PATH}`;
  await promisify(execFile)(program, args, { cwd: folder, env });
}
