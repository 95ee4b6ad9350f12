import type { FenceQuestion } from '@playline/contracts';
import type { RowBuffer } from './row/row-buffer.ts';
import type { LogPosition } from './row/transcoder.ts';
import type { EventTable } from './store.ts';

/** Where a record stands in the log, and when it came there. */
export interface LoggedPlace extends LogPosition {
  /** Epoch milliseconds: the broker's clock where the topic keeps log-append time. */
  readonly timestampMs: number;
}

/** Whether an erasure keeps out what happened to this identity then. */
export type IsFenced = (question: FenceQuestion) => boolean;

/** How records of one type become rows. Pure: the same record in the same place gives the same rows, always. */
export interface RecordRows<R> {
  /** In the order in which they are written. */
  readonly tables: readonly TableRows<R>[];
}

export interface TableRows<R> {
  readonly table: EventTable;
  /** What of the record may stand in this table: the record itself when nobody in it is fenced, null when nothing may. */
  withoutFenced(record: R, isFenced: IsFenced): R | null;
  /** @throws RangeError when a value does not fit its column; rows added before stay, the caller takes them back */
  readonly addRows: (out: RowBuffer, record: R, place: LoggedPlace) => void;
}
