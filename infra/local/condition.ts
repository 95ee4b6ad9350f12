// The file `processes.json` with the state of each process, written only by the supervisor.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { StackPaths } from './paths.ts';
import { readJsonFile, writePrivateFile } from './private-file.ts';
import { findSupervisor } from './supervisor.ts';

export type ProcessState = 'starting' | 'serving' | 'not serving' | 'ended' | 'stopped';

/** The state of a process as seen by the supervisor. */
export interface Condition {
  readonly name: string;
  readonly state: ProcessState;
  /** Process id; null while no process is running. */
  readonly pid: number | null;
  /** Time when the process started or ended (ISO 8601). */
  readonly sinceAt: string;
  /** Number of restarts since the stack was started. */
  readonly restarts: number;
  /** Reason why the process is not ready; null while it is ready. */
  readonly reason: string | null;
  /** True if the process has run for a minute without being ready. */
  readonly isSilent: boolean;
  /** The last error, even if the process has recovered. */
  readonly lastError: { readonly at: string; readonly what: string } | null;
}

const pathOf = (paths: StackPaths) => join(paths.state, 'processes.json');

export function writeConditions(paths: StackPaths, conditions: readonly Condition[]): void {
  writePrivateFile(pathOf(paths), `${JSON.stringify(conditions, null, 2)}\n`);
}

export function removeConditions(paths: StackPaths): void {
  rmSync(pathOf(paths), { force: true });
}

/** @returns the conditions in start order, or null if no supervisor is running */
export function readConditions(paths: StackPaths): Condition[] | null {
  return findSupervisor(paths) === null
    ? null
    : ((readJsonFile(pathOf(paths), 'run `npm run down`, then `npm run up`') ?? []) as Condition[]);
}
