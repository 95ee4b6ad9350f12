import { Hindrance } from './hindrance.ts';
import { Fenced, type LogPartition } from './log-partition.ts';
import type { Ownership } from './ownership.ts';
import type { Reports } from './partition-worker.ts';

/** A partition while it is ours: what its workers of either kind commit to and report about alike. */
export interface OwnedPartition extends Reports {
  readonly log: LogPartition;
  readonly ownership: Ownership;
  /** What keeps it from going on. */
  readonly hindrance: Hindrance;
}

export function createOwnedPartition(given: Omit<OwnedPartition, 'hindrance'>): OwnedPartition {
  return { ...given, hindrance: new Hindrance({ at: given.log, logger: given.logger }) };
}

/**
 * Commits an offset, again and again while the coordinator does not answer or refuses: what is not allowed today may be
 * tomorrow, and nothing is lost meanwhile. That it does not go on is in the log and in the partition's hindrance.
 * @throws Fenced when the partition is somebody else's, OwnershipOver when it is not ours any more
 */
export async function commitOffset(owned: OwnedPartition, offset: number, metadata: string): Promise<void> {
  const { log, ownership, metrics, hindrance } = owned;
  const trial = hindrance.begin(`offset ${offset} is not committed`);
  const commit = () => log.commit(offset, metadata);
  await ownership.retry(commit, (fault) => {
    if (fault instanceof Fenced) return false;
    metrics.retry(log.topic, 'commit');
    trial.failed(fault);
    return true;
  });
  trial.done();
}

/**
 * After a fault that does not pass: this partition stands at `offset`, loudly, and the others go on.
 * @returns a call that says it goes on; the end of the ownership says it as well
 */
export function stopPartition(owned: OwnedPartition, offset: number, error: unknown): () => void {
  const { log, ownership, metrics, logger, hindrance } = owned;
  const { topic, partition } = log;
  metrics.stopped(topic, 1);
  hindrance.stand('the partition has stopped', error);
  const release = () => {
    ownership.signal.removeEventListener('abort', release);
    hindrance.goOn();
    metrics.stopped(topic, -1);
  };
  ownership.signal.addEventListener('abort', release, { once: true });
  logger?.error({ error, topic, partition, offset }, 'the partition has stopped');
  log.pause();
  return release;
}
