import type { FenceQuestion } from '@playline/contracts';
import type { RowBuffer } from './row/row-buffer.ts';
import type { LogPosition } from './row/transcoder.ts';
import type { EventTable } from './store.ts';

/** Place and time of a record in the log. */
export interface LoggedPlace extends LogPosition {
  /** Epoch milliseconds. The broker's clock when the topic uses log-append time. */
  readonly timestampMs: number;
}

/** Whether the fence of an erasure keeps out an event of this identity at this time. */
export type IsFenced = (question: FenceQuestion) => boolean;

/** How records of one type become rows. Pure: the same record at the same place always gives the same rows. */
export interface RecordRows<R> {
  /** In the order in which they are written. */
  readonly tables: readonly TableRows<R>[];
}

export interface TableRows<R> {
  readonly table: EventTable;
  /**
   * The part of the record that may be stored in this table: all of it when nobody in it is fenced, null when nothing
   * may.
   */
  withoutFenced(record: R, isFenced: IsFenced): R | null;
  /** @throws RangeError when a value does not fit its column; rows added before it stay; the caller removes them */
  readonly addRows: (out: RowBuffer, record: R, place: LoggedPlace) => void;
}
