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
  /** A replica that is suspended for a moment, so that it lacks the last writes when its primary fails. */
  readonly replica?: string;
  /** Returns true when another process does the work of this one. */
  isReplaced?(): Promise<boolean>;
}

/** Longer than a cluster takes to replace a broker or a member of a group (3 s) or a Redis primary (1 s). */
const ABSENT_MS = { min: 4_000, max: 7_000 };

/** Long enough for writes that a suspended replica lacks, shorter than the node timeout of 1 s. */
const BEHIND_MS = 800;
const KILL_INTERVAL_MS = 50;

async function suspend(pid: number): Promise<() => void> {
  process.kill(pid, 'SIGSTOP');
  await waitFor('the process is stopped', () => isStopped(pid));
  return () => void process.kill(pid, 'SIGCONT');
}

/** Kills a process until another has replaced it, or freezes it or cuts it from the network for some seconds. */
export async function fail(cluster: Cluster, random: Random, target: Target, failure: Failure): Promise<void> {
  const { name, replica, isReplaced = async () => true } = target;
  const pid = await cluster.pidOf(name);
  const resumeReplica = replica === undefined ? () => {} : await suspend(await cluster.pidOf(replica));
  if (replica !== undefined) await delay(BEHIND_MS);
  if (failure === 'SIGKILL') {
    process.kill(pid, failure);
    resumeReplica();
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
    resumeReplica();
    await delay(random.integer(ABSENT_MS.min, ABSENT_MS.max));
    await waitFor(`another process replaces ${name}`, isReplaced);
  } finally {
    restore();
  }
}
