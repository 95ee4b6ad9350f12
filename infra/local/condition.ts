import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { StackPaths } from './paths.ts';
import { readJsonFile, writePrivateFile } from './private-file.ts';
import { findSupervisor } from './supervisor.ts';

/** State of a process, as its supervisor last saw it. */
export type ProcessState = 'starting' | 'serving' | 'not serving' | 'ended' | 'stopped';

/** What only the supervisor knows of a process. */
export interface Condition {
  readonly name: string;
  readonly state: ProcessState;
  /** Null while there is no process. */
  readonly pid: number | null;
  /** When the process was started, or ended (ISO 8601). */
  readonly sinceAt: string;
  /** How often it was restarted since the stack was started. */
  readonly restarts: number;
  /** Why it does not serve; null while it does. */
  readonly reason: string | null;
  /** True when it has run for a minute without serving. It may be waiting for something, or it hangs. */
  readonly isSilent: boolean;
  /** The last fault, even if it is over. */
  readonly lastError: { readonly at: string; readonly what: string } | null;
}

/**
 * `processes.json`. Only the supervisor writes it, so that its many writes do not conflict with those of `stack.json`.
 */
const pathOf = (places: StackPaths) => join(places.state, 'processes.json');

/** Replaces the record of all processes, mode 0600. */
export function writeConditions(places: StackPaths, conditions: readonly Condition[]): void {
  writePrivateFile(pathOf(places), `${JSON.stringify(conditions, null, 2)}\n`);
}

export function removeConditions(places: StackPaths): void {
  rmSync(pathOf(places), { force: true });
}

/**
 * What the living supervisor of this checkout knows of its processes, in the order of their start; null when there is
 * no supervisor.
 */
export function readConditions(places: StackPaths): Condition[] | null {
  return findSupervisor(places) === null
    ? null
    : ((readJsonFile(pathOf(places), '`npm run down`, then `npm run up` writes it anew') ?? []) as Condition[]);
}
