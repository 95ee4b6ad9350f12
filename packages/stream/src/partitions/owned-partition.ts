import { Hindrance } from './hindrance.ts';
import { Fenced, type LogPartition } from './log-partition.ts';
import type { Ownership } from './ownership.ts';
import type { Reports } from './partition-worker.ts';

/** A partition that is assigned to this process: what both kinds of workers commit to and report to. */
export interface OwnedPartition extends Reports {
  readonly log: LogPartition;
  readonly ownership: Ownership;
  /** Why it does not go on. */
  readonly hindrance: Hindrance;
}

export function createOwnedPartition(given: Omit<OwnedPartition, 'hindrance'>): OwnedPartition {
  return { ...given, hindrance: new Hindrance({ at: given.log, logger: given.logger }) };
}

/**
 * Commits an offset, and repeats that while the coordinator does not answer or refuses: a missing grant may be given
 * later, and nothing is lost meanwhile. The log and the partition's hindrance say that it does not go on.
 * @throws Fenced when the partition belongs to another member, OwnershipOver when it is not assigned here any more
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
 * After a fault that waiting does not end: this partition stands at `offset`, and that is logged and counted. Other
 * partitions go on.
 * @returns a function to call when it goes on again; the end of the ownership does the same
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
