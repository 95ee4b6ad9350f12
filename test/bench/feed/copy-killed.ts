import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Bench } from '../figure.ts';
import { waitFor } from '../processes.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
/** Average size of a line, to kill at a chosen share of the copy. */
const LINE_BYTES = 750;
/** Generous: copying ten million activities takes hours on a busy machine. */
const COPY_MAX_MS = 86_400_000;

export interface KilledCopy {
  readonly url: string;
  readonly chain: string;
  /** Output file of the copy. Its state is stored beside it. */
  readonly file: string;
  readonly kills: number;
  /** Approximate number of activities to copy. */
  readonly activities: number;
}

/** Kills `operator replicate` this many times at random moments, then runs it to its end. */
export async function copyKilled(bench: Bench, copy: KilledCopy): Promise<{ seconds: number }> {
  const startedAt = performance.now();
  for (let kill = 1; kill <= copy.kills; kill++) {
    const share = (kill - Math.random()) / (copy.kills + 1);
    const job = start(bench, copy);
    const isDue = async () => job.ended() !== null || sizeOf(copy.file) >= share * copy.activities * LINE_BYTES;
    await waitFor(`${Math.round(100 * share)} % are copied`, isDue, { maxMs: COPY_MAX_MS });
    if (job.ended() !== null) throw new Error(`the copy ended before it was killed: ${job.output()}`);
    await job.kill();
  }
  const job = start(bench, copy);
  await waitFor('the copy ends', async () => job.ended() !== null, { maxMs: COPY_MAX_MS });
  if (job.ended() !== 0) throw new Error(`the copy ended with ${job.ended()}: ${job.output()}`);
  return { seconds: (performance.now() - startedAt) / 1_000 };
}

const sizeOf = (file: string) => (existsSync(file) ? statSync(file).size : 0);

function start(bench: Bench, { url, chain, file }: KilledCopy) {
  const words = [
    'replicate',
    '--chain',
    chain,
    '--url',
    url,
    '--to',
    'file',
    '--out',
    file,
    '--state',
    `${file}.state`,
  ];
  const env = { PATH: process.env.PATH ?? '', ...bench.environment };
  const child = spawn(process.execPath, ['services/operator/src/main.ts', ...words, '--page-size', '200', '--json'], {
    cwd: ROOT,
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const exited = once(child, 'exit') as Promise<[number | null]>;
  let output = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    output = (output + chunk).slice(-1_000);
  });
  const atExit = () => child.kill('SIGKILL');
  process.once('exit', atExit);
  child.once('exit', () => process.removeListener('exit', atExit));
  return {
    ended: () => child.exitCode,
    output: () => output,
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
