import type { Change, Placed } from './record-log.ts';
import type { ViewStanding } from './view-faults.ts';

/** What a view knows of itself. */
export interface RecordStanding extends ViewStanding {
  /** By partition the offset in front of which everything of the log has been brought in; absent: nothing has. */
  readonly places: ReadonlyMap<number, number>;
}

/** The place of a view in one partition, moved on. */
export interface PlaceMove {
  readonly partition: number;
  /** Where it must stand, else it is not moved; null: nowhere yet. */
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
  /** Names the moment; no other has its name. */
  readonly version: string;
  /** Null: as they were at the version that was asked with. */
  readonly records: readonly R[] | null;
}

/**
 * One kind of records as processes ask for them, made of the log alone: it can always be made again. Of two records of
 * one id the one of the higher revision stands, and of one revision the one that is later in the log; so a record may be
 * brought in again, and late.
 */
export interface RecordView<R extends Change> {
  standing(): Promise<RecordStanding>;
  /**
   * All records, unless nothing has changed since a version.
   * @throws IncompleteViewFault when the view never had them all, has lost them, or was started since, which may have
   *   cost it the last changes: nobody can say then what is there and what is not
   */
  readSince(version: string | null): Promise<RecordPage<R>>;
  /** @throws Error when `completeIn` names a run that is over: what is brought in may be lost again. Nothing is done */
  update(update: ViewUpdate<R>): Promise<void>;
  /** Everything that it holds, complete or not. */
  held(): Promise<readonly Placed<R>[]>;
  /**
   * As `update`, for a log that is read whole: takes out those that are named, where they stand as they are named, and puts
   * every place where `moves` lead, wherever it stood.
   */
  restore(update: ViewUpdate<R> & { readonly removed: readonly Placed<R>[] }): Promise<void>;
  /** Runs `work` while nobody else runs theirs, in any process; waits for its turn. @throws when the view cannot say */
  exclusive<T>(work: () => Promise<T>): Promise<T>;
}

/** Whether a record takes the place of another one of its id. */
export function isLater<R extends Change>(placed: Placed<R>, standing: Placed<R> | undefined): boolean {
  if (standing === undefined) return true;
  const revisions = placed.record.revision - standing.record.revision;
  return revisions > 0 || (revisions === 0 && placed.offset > standing.offset);
}
