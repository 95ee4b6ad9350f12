// `processes.json`: the state of each process, written only by the supervisor.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { StackPaths } from './paths.ts';
import { readJsonFile, writePrivateFile } from './private-file.ts';
import { findSupervisor } from './supervisor.ts';

export type ProcessState = 'starting' | 'serving' | 'not serving' | 'ended' | 'stopped';

/** The supervisor's view of a process. */
export interface Condition {
  readonly name: string;
  readonly state: ProcessState;
  /** Null while there is no process. */
  readonly pid: number | null;
  /** When the process was started, or ended (ISO 8601). */
  readonly sinceAt: string;
  /** Since the stack was started. */
  readonly restarts: number;
  /** Why it does not serve; null while it does. */
  readonly reason: string | null;
  /** True when it has run for a minute without serving. */
  readonly isSilent: boolean;
  /** The last fault, even if it has passed. */
  readonly lastError: { readonly at: string; readonly what: string } | null;
}

const pathOf = (paths: StackPaths) => join(paths.state, 'processes.json');

export function writeConditions(paths: StackPaths, conditions: readonly Condition[]): void {
  writePrivateFile(pathOf(paths), `${JSON.stringify(conditions, null, 2)}\n`);
}

export function removeConditions(paths: StackPaths): void {
  rmSync(pathOf(paths), { force: true });
}

/** In the order of their start; null when no supervisor runs. */
export function readConditions(paths: StackPaths): Condition[] | null {
  return findSupervisor(paths) === null
    ? null
    : ((readJsonFile(pathOf(paths), 'run `npm run down`, then `npm run up`') ?? []) as Condition[]);
}
