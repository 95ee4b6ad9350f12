import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Figure } from '../figure.ts';
import { toRow } from '../figure.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
/** What a start downloads, and makes of it once: with these the figure is warm, without them it is the network's. */
const DOWNLOADS = ['node', 'npm-cache', 'kafka', 'registry', 'java'];

/**
 * Clone to first stored event, warm: a fresh clone of what is committed, with this checkout's downloads. `up` returns
 * when one event has come out of ClickHouse. Beside it the second start of the same clone, which has all it needs.
 */
export const start: Figure = {
  name: 'start',
  optional: true,
  async measure() {
    const folder = mkdtempSync(join(tmpdir(), 'playline-bench-start-'));
    const clone = join(folder, 'clone');
    try {
      const cloned = await timed(() => run('git', ['clone', '--quiet', ROOT, clone], folder));
      copyDownloads(clone);
      const first = await timed(() => command('up', clone));
      await command('down', clone);
      const again = await timed(() => command('up', clone));
      return [
        toRow({
          ...{ figure: 'start', case: 'clone to first stored event, warm', unit: 'seconds' },
          ...{ ours: cloned + first, beside: 'second start of the clone', theirs: again },
          also: `clone ${cloned.toFixed(1)} s`,
        }),
      ];
    } finally {
      if (existsSync(clone)) await command('down', clone);
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

function copyDownloads(clone: string): void {
  for (const name of DOWNLOADS) {
    const from = join(ROOT, '.playline', name);
    if (existsSync(from)) cpSync(from, join(clone, '.playline', name), { recursive: true });
  }
}

const command = (name: string, clone: string) =>
  run(process.execPath, [join('infra', 'local', 'bootstrap.mjs'), name], clone);

/** No setting of this run reaches the clone: ports and addresses are its own. */
async function run(program: string, args: string[], folder: string): Promise<void> {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('PLAYLINE_'));
  const env = Object.fromEntries(kept);
  env.PATH = `${dirname(process.execPath)}:${env.PATH}`;
  await promisify(execFile)(program, args, { cwd: folder, env });
}

async function timed(work: () => Promise<void>): Promise<number> {
  const startMs = performance.now();
  await work();
  return (performance.now() - startMs) / 1000;
}
