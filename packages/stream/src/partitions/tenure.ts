import type { Epoch } from './epoch.ts';
import { Fenced, type LogPartition } from './log-partition.ts';
import type { Reports } from './partition-worker.ts';

/** A partition while it is ours: what its workers of either kind commit to and report about alike. */
export interface Tenure extends Reports {
  readonly log: LogPartition;
  readonly epoch: Epoch;
}

/**
 * Commits an offset, again and again while the coordinator does not answer.
 * @throws Fenced when the partition is somebody else's, EpochOver when it is not ours any more
 */
export async function commitOffset({ log, epoch, metrics }: Tenure, offset: number, metadata: string): Promise<void> {
  const commit = () => log.commit(offset, metadata);
  await epoch.retry(commit, (fault) => {
    if (fault instanceof Fenced) return false;
    metrics.retry(log.topic, 'commit');
    return true;
  });
}

/**
 * After a fault that does not pass: this partition stands at `offset`, loudly, and the others go on.
 * @returns a call that says it goes on; the end of the epoch says it as well
 */
export function stopPartition({ log, epoch, metrics, logger }: Tenure, offset: number, error: unknown): () => void {
  const { topic, partition } = log;
  metrics.stopped(topic, 1);
  const release = () => {
    epoch.signal.removeEventListener('abort', release);
    metrics.stopped(topic, -1);
  };
  epoch.signal.addEventListener('abort', release, { once: true });
  logger?.error({ error, topic, partition, offset }, 'the partition has stopped');
  log.pause();
  return release;
}
