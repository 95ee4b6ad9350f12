import type { Change, Placed } from './record-log.ts';
import type { ViewStanding } from './view-faults.ts';

/** What a view knows of itself. */
export interface RecordStanding extends ViewStanding {
  /** For each partition the offset up to which the log was brought in; absent when nothing was. */
  readonly places: ReadonlyMap<number, number>;
}

/** Moves the view's place in one partition forward. */
export interface PlaceMove {
  readonly partition: number;
  /** The move is made only if the place is here; null: there is no place yet. */
  readonly from: number | null;
  readonly to: number;
}

/** What is brought into a view, in one step. */
export interface ViewUpdate<R> {
  readonly changes: readonly Placed<R>[];
  readonly moves: readonly PlaceMove[];
  /** The view is complete in this run from then on; null says nothing of that. */
  readonly completeIn: string | null;
}

/** All records of a moment. */
export interface RecordPage<R> {
  /** A name for this state of the records. No other state has it. */
  readonly version: string;
  /** Null: as they were at the version that was asked with. */
  readonly records: readonly R[] | null;
}

/**
 * One kind of record as processes read it. It is made from the log alone, so it can always be rebuilt. Of two records
 * of one id the higher revision counts; of equal revisions the one later in the log. So a record may be brought in
 * twice, and late.
 */
export interface RecordView<R extends Change> {
  standing(): Promise<RecordStanding>;
  /**
   * All records, unless nothing has changed since a version.
   * @throws IncompleteViewFault when the view never had all records, has lost them, or was restarted, which may have
   * cost it the last changes: nobody can then say what exists
   */
  readSince(version: string | null): Promise<RecordPage<R>>;
  /** @throws Error when `completeIn` names a run that is over: what is brought in may be lost again. Nothing is done */
  update(update: ViewUpdate<R>): Promise<void>;
  /** Everything that it holds, complete or not. */
  held(): Promise<readonly Placed<R>[]>;
  /**
   * Like `update`, for a log that was read as a whole. Removes the named records if they are still as named, and sets
   * every place to where `moves` lead, wherever it was before.
   */
  restore(update: ViewUpdate<R> & { readonly removed: readonly Placed<R>[] }): Promise<void>;
  /** Runs `work` exclusively across all processes; waits for its turn. @throws when the view cannot say */
  exclusive<T>(work: () => Promise<T>): Promise<T>;
}

/** Whether a record replaces another one of its id. */
export function isLater<R extends Change>(placed: Placed<R>, standing: Placed<R> | undefined): boolean {
  if (standing === undefined) return true;
  const revisions = placed.record.revision - standing.record.revision;
  return revisions > 0 || (revisions === 0 && placed.offset > standing.offset);
}
