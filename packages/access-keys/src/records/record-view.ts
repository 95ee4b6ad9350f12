// The view of a record kind: what processes read, derived from the log.
import type { Change, ReceivedRecord, RecordKind } from './record-log.ts';

/** The view may lack changes of the log. */
export class IncompleteViewFault extends Error {
  override readonly name = 'IncompleteViewFault';
}

/** The log has the change, but the view may not, until the next reader applies it. */
export class ViewFault extends Error {
  override readonly name = 'ViewFault';
}

/** Another process has changed the same record; this change was not made. */
export class Overtaken extends Error {
  override readonly name = 'Overtaken';
}

/** The log ends before the offset that the view has applied: it was probably lost. */
export class LogLost extends Error {
  override readonly name = 'LogLost';
}

export interface ViewStatus {
  /** Names the present run of the store: from its start or promotion to the next. */
  readonly run: string;
  /** The last run in which the view was complete; null when it never was. */
  readonly completeIn: string | null;
  /** Applied offset by partition. */
  readonly offsets: ReadonlyMap<number, number>;
}

/** Moves an applied offset forward. */
export interface OffsetMove {
  readonly partition: number;
  /** The expected offset; null: none yet. Otherwise the offset is not moved. */
  readonly from: number | null;
  readonly to: number;
}

/** Applied in one step. */
export interface ViewUpdate<R> {
  readonly changes: readonly ReceivedRecord<R>[];
  readonly moves: readonly OffsetMove[];
  /** The run in which the view is then complete; null keeps the mark. */
  readonly completeIn: string | null;
}

export interface RecordPage<R> {
  /** A unique name of this state of the records. */
  readonly version: string;
  /** False: only the records that have changed since the requested version. */
  readonly isWhole: boolean;
  readonly records: readonly R[];
}

/** Of two records of an id the higher revision applies, then the higher offset. So records can be applied repeatedly and late. */
export interface RecordView<R extends Change> {
  readonly kind: RecordKind<R>;
  status(): Promise<ViewStatus>;
  /**
   * Changes since a version; all records for null or an old version.
   * @throws IncompleteViewFault when the view never had all records, or may have lost some
   */
  readSince(version: string | null): Promise<RecordPage<R>>;
  /** @throws Error, without effect, when `completeIn` is a past run */
  update(update: ViewUpdate<R>): Promise<void>;
  /** Everything in the view, complete or not. */
  held(): Promise<readonly ReceivedRecord<R>[]>;
  /** An update from the whole log: removes the given records unless they have changed, and sets every offset. */
  restore(update: ViewUpdate<R> & { readonly removed: readonly ReceivedRecord<R>[] }): Promise<void>;
  /** Runs `work` exclusively across processes. @throws when the view cannot answer */
  exclusive<T>(work: () => Promise<T>): Promise<T>;
}

/** Whether a record replaces another one of its id. */
export function isLater<R extends Change>(
  received: ReceivedRecord<R>,
  present: ReceivedRecord<R> | undefined,
): boolean {
  if (present === undefined) return true;
  const revisions = received.record.revision - present.record.revision;
  return revisions > 0 || (revisions === 0 && received.offset > present.offset);
}
