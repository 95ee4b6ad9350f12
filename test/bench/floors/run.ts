import { runChild } from '../processes.ts';

export interface FloorFigure {
  events: number;
  cpuSeconds: number;
  seconds: number;
  memoryPeakMib: number;
}

const FLOOR_MAX_MS = 120_000;

/**
 * Runs a floor in a separate process, so that it starts without a warm heap or compiled code.
 * @param file path relative to the bench folder @param onBegin called when the measurement starts
 */
export const runFloor = (
  file: string,
  environment: Record<string, string>,
  onBegin?: () => void,
): Promise<FloorFigure> =>
  runChild<FloorFigure>(file, {
    env: { PATH: process.env.PATH ?? '', KAFKAJS_NO_PARTITIONER_WARNING: '1', ...environment },
    timeout: FLOOR_MAX_MS,
    ...(onBegin && { onBegin }),
  });
