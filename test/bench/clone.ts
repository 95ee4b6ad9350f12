import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** What a start downloads, and makes of it once: with these a figure is warm, without them it is the network's. */
const DOWNLOADS = ['node', 'npm-cache', 'kafka', 'registry', 'java'];

/** A fresh clone of what is committed, with this checkout's downloads. */
export interface Clone {
  readonly folder: string;
  /** How long git took, in seconds. */
  readonly seconds: number;
  /** Runs a command of the local stack in it, as `npm run` does. @throws Error when it fails */
  command(name: string): Promise<void>;
  /** Ends its stack and removes it. */
  close(): Promise<void>;
}

/** Makes a clone in a folder of its own. */
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

/** No setting of this run reaches the clone: ports and addresses are its own. */
async function run(program: string, args: string[], folder: string): Promise<void> {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('PLAYLINE_'));
  const env = Object.fromEntries(kept);
  env.PATH = `${dirname(process.execPath)}:${env.PATH}`;
  await promisify(execFile)(program, args, { cwd: folder, env });
}
