import type { GuardedPartition } from '../../partitions/guarded-partition.ts';
import type { LogMark } from '../../partitions/log-mark.ts';
import type { LogPartition } from '../../partitions/log-partition.ts';

/** What a member knows of one of its partitions. */
export class Assignment {
  readonly guarded: GuardedPartition;
  /** End of the log as last heard, from a fetch or by asking. */
  end: number;
  /** The last fetch: where it was asked from, and its batches. */
  fetched: { readonly from: number; readonly batches: readonly LogMark[] } = { from: 0, batches: [] };

  constructor(guarded: GuardedPartition) {
    this.guarded = guarded;
    this.end = guarded.log.committed;
  }

  get log(): LogPartition {
    return this.guarded.log;
  }
}
