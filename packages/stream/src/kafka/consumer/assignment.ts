import type { GuardedPartition } from '../../partitions/guarded-partition.ts';
import type { LogMark } from '../../partitions/log-mark.ts';
import type { LogPartition } from '../../partitions/log-partition.ts';

/** What a member of a group knows of one partition assigned to it. */
export class Assignment {
  readonly guarded: GuardedPartition;
  /** End of the log as last learned, from a fetch or by asking. */
  end: number;
  /** The last fetch: the offset it asked for, and the batches it brought. */
  fetched: { readonly from: number; readonly batches: readonly LogMark[] } = { from: 0, batches: [] };

  constructor(guarded: GuardedPartition) {
    this.guarded = guarded;
    this.end = guarded.log.committed;
  }

  get log(): LogPartition {
    return this.guarded.log;
  }
}
