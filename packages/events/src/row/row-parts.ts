import type { EventTable } from '../store.ts';
import { createColumnReader } from './row-columns.ts';

const DAY_MS = 86_400_000;
/** The time by which a table is parted; no day lies in two of its months or weeks. */
const PARTED_BY: Partial<Record<EventTable, string>> = { events: 'event_time', message_rejections: 'received_at' };

/**
 * Creates a reader of the part of its table that a row goes to: its day, which is finer than any part, or 0 in a table
 * of one part. The store remembers a token for each part by itself.
 */
export function createPartReader(table: EventTable): (row: Buffer) => number {
  const column = PARTED_BY[table];
  if (column === undefined) return () => 0;
  const read = createColumnReader(table, [column]);
  return (row) => Math.floor(Number(read(row)[0]) / DAY_MS);
}
