import { existsSync, statSync } from 'node:fs';
import type { Bench } from '../figure.ts';
import { type Measured, openProcess, waitFor } from '../processes.ts';
import { BUSY } from './fill.ts';

const LINE_BYTES = 750;
/** Copying ten million activities takes hours on a busy machine. */
const COPY_MAX_MS = 86_400_000;

interface KilledCopy {
  readonly url: string;
  /** Output file of the copy. Its state is stored next to it. */
  readonly file: string;
  readonly kills: number;
  readonly activities: number;
}

/** Kills `operator replicate` this many times at random moments, and then runs it to its end. @returns seconds */
export async function copyKilled(bench: Bench, copy: KilledCopy): Promise<number> {
  const startMs = performance.now();
  for (let kill = 1; kill <= copy.kills; kill++) {
    const share = (kill - Math.random()) / (copy.kills + 1);
    const job = startCopy(bench, copy);
    const isDue = async () => job.exitCode() !== null || sizeOf(copy.file) >= share * copy.activities * LINE_BYTES;
    await waitFor(`${Math.round(100 * share)} % are copied`, isDue, { maxMs: COPY_MAX_MS });
    if (job.exitCode() !== null) throw new Error(`the copy ended before it was killed: ${job.output()}`);
    await job.close('SIGKILL');
  }
  const job = startCopy(bench, copy);
  await waitFor('the copy ends', async () => job.exitCode() !== null, { maxMs: COPY_MAX_MS });
  if (job.exitCode() !== 0) throw new Error(`the copy ended with ${job.exitCode()}: ${job.output()}`);
  return (performance.now() - startMs) / 1_000;
}

const sizeOf = (file: string) => (existsSync(file) ? statSync(file).size : 0);

function startCopy({ environment }: Bench, { url, file }: KilledCopy): Measured {
  const target = ['--chain', BUSY, '--url', url, '--to', 'file', '--out', file, '--state', `${file}.state`];
  const args = ['replicate', ...target, '--page-size', '200', '--json'];
  return openProcess('services/operator/src/main.ts', { environment, args });
}
