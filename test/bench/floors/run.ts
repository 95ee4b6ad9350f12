import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** Work and cost of a floor's process. */
export interface FloorFigure {
  events: number;
  cpuSeconds: number;
  /** Peak memory of its process; absent when the floor does not report it. */
  memoryPeakMib?: number;
  /** Wall-clock time; absent when the floor does not report it. */
  seconds?: number;
}

/** A floor that takes longer hangs. */
const FLOOR_MAX_MS = 120_000;

/**
 * Runs a floor in a separate process, so that it shares no heap or compiled code.
 * @param onBegin called when the floor has prepared its work and begins to measure
 */
export function runFloor(name: string, environment: Record<string, string>, onBegin = () => {}): Promise<FloorFigure> {
  const file = fileURLToPath(new URL(`./${name}.ts`, import.meta.url));
  const env = { PATH: process.env.PATH ?? '', KAFKAJS_NO_PARTITIONER_WARNING: '1', ...environment };
  const child = fork(file, { env, timeout: FLOOR_MAX_MS, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  return new Promise((resolve, reject) => {
    let figure: FloorFigure | null = null;
    child.on('message', (message: 'begin' | FloorFigure) => {
      if (message === 'begin') onBegin();
      else figure = message;
    });
    child.once('error', reject);
    child.once('exit', (code) =>
      figure === null ? reject(new Error(`floor ${name} ended with ${code}`)) : resolve(figure),
    );
  });
}
