import type { RowBuffer } from './row-buffer.ts';
import { createColumnFinder } from './row-columns.ts';

const findKey = createColumnFinder('events', 'anonymous_key');
const findId = createColumnFinder('events', 'anonymous_id');

/**
 * Takes the anonymous id and its key out of the row of `events` that was added last: the row is somebody else's, who used
 * the device of one who was erased. Rare, so the row is walked, and what stands behind the id moves up.
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
