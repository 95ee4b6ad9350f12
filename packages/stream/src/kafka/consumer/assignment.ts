import type { GuardedPartition } from '../../partitions/guarded-partition.ts';
import type { LogMark } from '../../partitions/log-mark.ts';
import type { LogPartition } from '../../partitions/log-partition.ts';

/** What a member knows of one of its partitions. */
export class Assignment {
  readonly guarded: GuardedPartition;
  /** End of the log as last heard, from a fetch or by asking. */
  end: number;
  /** A jump of the log seen once: an answer from before the assignment, unless it is seen again. */
  jumpTo: number | null = null;
  /** Batches of the last fetch. */
  fetched: readonly LogMark[] = [];

  constructor(guarded: GuardedPartition) {
    this.guarded = guarded;
    this.end = guarded.log.committed;
  }

  get log(): LogPartition {
    return this.guarded.log;
  }
}
