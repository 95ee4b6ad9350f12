// Kills a process of a cluster, freezes it, or cuts it from the network.
import { setTimeout as delay } from 'node:timers/promises';
import type { Random } from '@playline/testkit/random';
import type { Cluster } from './cluster.ts';
import { cutFromNetwork } from './network-cut.ts';
import { isStopped } from './service-process.ts';
import { waitFor } from './wait.ts';

export const FAILURES = {
  SIGKILL: 'killed',
  SIGSTOP: 'frozen',
  cut: 'cut from the network',
} as const;
export type Failure = keyof typeof FAILURES;

/** A process that fails. */
export interface Target {
  readonly name: string;
  /** Called before the failure. @returns a function that is called as soon as the process has failed */
  prepare?(): Promise<() => Promise<void>>;
  /** Returns true when another process does the work of this one. Polled until then, so the process is away for longer. */
  isReplaced?(): Promise<boolean>;
}

/** Longer than a cluster takes to replace a broker or a member of a group (3 s) or a Redis primary (1 s). */
const ABSENT_MS = { min: 4_000, max: 7_000 };
const KILL_INTERVAL_MS = 50;

/** @returns a function that resumes the process */
export async function suspend(pid: number): Promise<() => void> {
  process.kill(pid, 'SIGSTOP');
  try {
    await waitFor('the process is stopped', () => isStopped(pid));
  } catch (error) {
    process.kill(pid, 'SIGCONT');
    throw error;
  }
  return () => void process.kill(pid, 'SIGCONT');
}

/** Makes a process fail until another has replaced it. Resolves when a killed process has ended, or a frozen one resumes. */
export async function fail(cluster: Cluster, random: Random, target: Target, failure: Failure): Promise<void> {
  const { name, prepare, isReplaced = async () => true } = target;
  const pid = await cluster.pidOf(name);
  const hasFailed = (await prepare?.()) ?? (async () => {});
  if (failure === 'SIGKILL') {
    process.kill(pid, failure);
    await hasFailed();
    await waitFor(`${name} has ended`, () => cluster.stack.file.processes[name] !== pid);
    // The stack restarts a process immediately, but a machine that fails does not return before it is replaced.
    await waitFor(`another process replaces ${name}`, async () => {
      if (await isReplaced().catch(() => false)) return true;
      const restarted = cluster.stack.file.processes[name];
      if (restarted !== undefined) process.kill(restarted, failure);
      await delay(KILL_INTERVAL_MS);
      return false;
    });
    return;
  }
  const restore = failure === 'cut' ? cutFromNetwork(pid) : await suspend(pid);
  try {
    await hasFailed();
    await delay(random.integer(ABSENT_MS.min, ABSENT_MS.max));
    await waitFor(`another process replaces ${name}`, isReplaced);
  } finally {
    restore();
  }
}
