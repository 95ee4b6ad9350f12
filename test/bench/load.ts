import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Load, LoadResult } from './load-process.ts';
import { cpuSecondsOf } from './processes.ts';

/** What a load saw, and what the process under load spent on it. */
export interface LoadFigure extends LoadResult {
  cpuSeconds: number;
}

/**
 * Puts a load on a server, from a process of its own, and reads the server's CPU seconds at both ends of the window.
 * @throws Error when the load's process fails, or when not every answer within the window was 200
 */
export function measureUnderLoad(serverPid: number, load: Load): Promise<LoadFigure> {
  const file = fileURLToPath(new URL('./load-process.ts', import.meta.url));
  const child = fork(file, [JSON.stringify(load)], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  let before = 0;
  let figure: LoadFigure | null = null;
  child.on('message', (message: 'begin' | LoadResult) => {
    if (message === 'begin') before = cpuSecondsOf(serverPid);
    else figure = { ...message, cpuSeconds: cpuSecondsOf(serverPid) - before };
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => {
      if (figure === null || code !== 0) return reject(new Error(`the load ended with ${code}`));
      const { refused } = figure;
      if (Object.keys(refused).length > 0)
        return reject(new Error(`answers that were not 200: ${JSON.stringify(refused)}`));
      resolve(figure);
    });
  });
}
