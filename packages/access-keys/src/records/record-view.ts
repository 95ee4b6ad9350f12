// Record views: derived from the log, and read by all processes.
import type { Change, ReceivedRecord, RecordKind } from './record-log.ts';

/** The view may be missing changes from the log. */
export class IncompleteViewFault extends Error {
  override readonly name = 'IncompleteViewFault';
}

/** The change is in the log, but may be missing from the view until the next sync. */
export class ViewFault extends Error {
  override readonly name = 'ViewFault';
}

/** Another process has changed the same record, so this change was not applied. */
export class ConcurrentChange extends Error {
  override readonly name = 'ConcurrentChange';
}

/** The log ends before the view's applied offset, probably because data was lost. */
export class LogLost extends Error {
  override readonly name = 'LogLost';
}

export interface ViewStatus {
  /** Identifies the current run of the store, which lasts until the next restart or failover. */
  readonly run: string;
  /** The last run in which the view was complete, or null. */
  readonly completeIn: string | null;
  /** Applied offset per partition. */
  readonly offsets: ReadonlyMap<number, number>;
}

/** Advances an applied offset. */
export interface OffsetMove {
  readonly partition: number;
  /** The expected current offset; null if none exists yet. On a mismatch the offset does not change. */
  readonly from: number | null;
  readonly to: number;
}

/** Changes that are applied atomically. */
export interface ViewUpdate<R> {
  readonly changes: readonly ReceivedRecord<R>[];
  readonly moves: readonly OffsetMove[];
  /** Marks the view as complete in this run; null leaves the marker unchanged. */
  readonly completeIn: string | null;
}

export interface RecordPage<R> {
  /** Identifies the state of the records that the page contains. */
  readonly version: string;
  /** False if the page contains only changes since the requested version. */
  readonly isWhole: boolean;
  readonly records: readonly R[];
}

/** The record with the highest revision of an id wins, then the highest offset. Applying it late or twice is safe. */
export interface RecordView<R extends Change> {
  readonly kind: RecordKind<R>;
  status(): Promise<ViewStatus>;
  /**
   * Returns the changes since a version, or all records for null or an outdated version.
   * @throws IncompleteViewFault if the view is or may be missing records
   */
  readSince(version: string | null): Promise<RecordPage<R>>;
  /** @throws Error without changing anything if `completeIn` is not the current run */
  update(update: ViewUpdate<R>): Promise<void>;
  /** Returns all records in the view, even if the view is incomplete. */
  readStored(): Promise<readonly ReceivedRecord<R>[]>;
  /** Applies an update from the whole log: sets all offsets, and deletes `removed` records that have not changed. */
  restore(update: ViewUpdate<R> & { readonly removed: readonly ReceivedRecord<R>[] }): Promise<void>;
  /** Runs `work` under a lock that all processes share. @throws if the view does not respond */
  exclusive<T>(work: () => Promise<T>): Promise<T>;
}

/** Returns whether a record supersedes the current record with the same id. */
export function isLater<R extends Change>(
  received: ReceivedRecord<R>,
  current: ReceivedRecord<R> | undefined,
): boolean {
  if (current === undefined) return true;
  const revisions = received.record.revision - current.record.revision;
  return revisions > 0 || (revisions === 0 && received.offset > current.offset);
}
