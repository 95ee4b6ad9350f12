import type { Change, ReceivedRecord, RecordKind } from './record-log.ts';

/** The view may lack changes. They can be restored from the log. */
export class IncompleteViewFault extends Error {
  override readonly name = 'IncompleteViewFault';
}

/** The log has the change, but the view may not. The next reader of the log applies it; until then processes use the view. */
export class ViewFault extends Error {
  override readonly name = 'ViewFault';
}

/** Another process has changed the same record, and its change counts: this one was not made. */
export class Overtaken extends Error {
  override readonly name = 'Overtaken';
}

/** The log has fewer records than the view has read from it. Most likely the log was lost. */
export class LogLost extends Error {
  override readonly name = 'LogLost';
}

/** What a view knows of itself. */
export interface ViewStatus {
  /** Names the present run of the store, which lasts from its start, or its promotion in a failover, to the next one. */
  readonly run: string;
  /** The run in which the view was complete last; null when it never was, or has lost that too. */
  readonly completeIn: string | null;
  /** For each partition the offset up to which the log was applied; absent when nothing was. */
  readonly offsets: ReadonlyMap<number, number>;
}

/** Moves the view's offset in one partition forward. */
export interface OffsetMove {
  readonly partition: number;
  /** The move is made only if the offset is this; null: there is no offset yet. */
  readonly from: number | null;
  readonly to: number;
}

/** What is applied to a view, in one step. */
export interface ViewUpdate<R> {
  readonly changes: readonly ReceivedRecord<R>[];
  readonly moves: readonly OffsetMove[];
  /** The view is complete in this run from then on; null leaves that as it is. */
  readonly completeIn: string | null;
}

/** Records of a moment. */
export interface RecordPage<R> {
  /** A name for this state of the records. No other state has it. */
  readonly version: string;
  /** Whether `records` are all there are; else those that have changed since the version of the request. */
  readonly isWhole: boolean;
  readonly records: readonly R[];
}

/**
 * One kind of record as processes read it. It is made from the log alone, so it can always be rebuilt. Of two records
 * of one id the higher revision counts; of equal revisions the one later in the log. So a record may be applied twice,
 * and late.
 */
export interface RecordView<R extends Change> {
  readonly kind: RecordKind<R>;
  status(): Promise<ViewStatus>;
  /**
   * What has changed since a version; all records for null, and for a version that is too old.
   * @throws IncompleteViewFault when the view never had all records, has lost them, or was restarted, which may have
   * cost it the last changes: then nothing can be said about which records exist
   */
  readSince(version: string | null): Promise<RecordPage<R>>;
  /** @throws Error when `completeIn` names a run that is over: what is applied may be lost again. Nothing is done */
  update(update: ViewUpdate<R>): Promise<void>;
  /** Everything that it holds, complete or not. */
  held(): Promise<readonly ReceivedRecord<R>[]>;
  /**
   * Like `update`, for a log that was read as a whole. Removes the named records if they are still as named, and sets
   * every offset to the end of its move, whatever it was before.
   */
  restore(update: ViewUpdate<R> & { readonly removed: readonly ReceivedRecord<R>[] }): Promise<void>;
  /** Runs `work` exclusively across all processes; waits for its turn. @throws when the view cannot answer */
  exclusive<T>(work: () => Promise<T>): Promise<T>;
}

/** Whether a record replaces another one of its id. */
export function isLater<R extends Change>(placed: ReceivedRecord<R>, present: ReceivedRecord<R> | undefined): boolean {
  if (present === undefined) return true;
  const revisions = placed.record.revision - present.record.revision;
  return revisions > 0 || (revisions === 0 && placed.offset > present.offset);
}
