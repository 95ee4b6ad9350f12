import type { RowBuffer } from './row-buffer.ts';
import { createColumnFinder } from './row-columns.ts';

const findKey = createColumnFinder('events', 'anonymous_key');
const findId = createColumnFinder('events', 'anonymous_id');

/**
 * Removes the anonymous id and its key from the row of `events` that was added last. The row belongs to another person
 * who used the device of the erased one. This is rare, so the row is walked and the bytes behind the id are moved.
 */
export function blankAnonymous(out: RowBuffer): void {
  const row = out.rowAt(out.rows - 1);
  const [key, id] = [findKey(row), findId(row)];
  row.fill(0, key.start, key.end);
  row[id.start] = 0;
  row.copyWithin(id.start + 1, id.end);
  const end = out.length - (id.end - id.start - 1);
  out.truncate(out.rows - 1);
  out.endRow(end);
}
