import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Load, LoadResult } from './load-process.ts';
import { cpuSecondsOf } from './processes.ts';

/** Results of a load, and the cost of the process under load. */
export interface LoadFigure extends LoadResult {
  cpuSeconds: number;
}

/**
 * Puts a load on a server from a separate process, and reads the server's CPU seconds at both ends of the window.
 * @param work begins with the window, which then ends with it
 * @throws Error when the load's process fails, or when an answer within the window was not 200; also what `work` throws
 */
export function measureUnderLoad(serverPid: number, load: Load, work?: () => Promise<void>): Promise<LoadFigure> {
  const file = fileURLToPath(new URL('./load-process.ts', import.meta.url));
  const child = fork(file, [JSON.stringify(load)], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  let before = 0;
  let figure: LoadFigure | null = null;
  let worked = Promise.resolve();
  const begin = () => {
    before = cpuSecondsOf(serverPid);
    if (work === undefined) return;
    worked = work().finally(() => child.connected && child.send('end'));
    // The error is reported when the load has ended. Until then it must not count as an unhandled rejection.
    worked.catch(() => {});
  };
  child.on('message', (message: 'begin' | LoadResult) => {
    if (message === 'begin') begin();
    else figure = { ...message, cpuSeconds: cpuSecondsOf(serverPid) - before };
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => {
      if (figure === null || code !== 0) return reject(new Error(`the load ended with ${code}`));
      const { refused } = figure;
      if (Object.keys(refused).length > 0)
        return reject(new Error(`answers that were not 200: ${JSON.stringify(refused)}`));
      resolve(worked.then(() => figure as LoadFigure));
    });
  });
}
