import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** What a floor did and what it cost its own process. */
export interface FloorFigure {
  events: number;
  cpuSeconds: number;
  /** The most memory its process has held; where the floor says so. */
  memoryPeakMib?: number;
  /** By the clock, where the floor tells it. */
  seconds?: number;
}

/** A floor that has not ended by then hangs. */
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
