import { type ActivityRow, type ActivityStore, partOfActivity } from '@playline/chain';
import { type StoreCalls, storeFolding, storeOnce, toBlockToken } from '@playline/stream';
import type { TimedRows } from '../blocks/timed-block.ts';

/**
 * Creates the step that stores a block's activities once: first the versions, then what says which versions there are.
 * Both stand before the watermark says so.
 */
export function createWriteActivities({ store, calls }: { store: ActivityStore; calls: StoreCalls }) {
  return async (given: TimedRows<ActivityRow>): Promise<void> => {
    const { rows, block, transformVersion, notes, signal } = given;
    if (rows.length === 0) return;
    const { start, end, triedBefore = false } = block;
    const pick = (asked: readonly number[]) => asked.map((row) => rows[row]!);
    const insertInto = (table: 'activities' | 'activity_versions') => (asked: readonly number[], token: string) =>
      calls.insert(table, asked.length, () => store.insert({ table, rows: pick(asked), token, signal }));
    const name = { block, transformVersion };
    await storeOnce({
      ...{ start, end, triedBefore, notes },
      tokenOf: (from, to) => toBlockToken({ ...name, table: 'activities' }, from, to),
      rows: {
        count: rows.length,
        offsetOf: (row) => rows[row]!.offset,
        partOf: (row) => partOfActivity(rows[row]!),
        insert: insertInto('activities'),
        storedOffsets: (asked) => calls.ask('activities', () => store.storedOffsets(pick(asked))),
      },
    });
    const token = toBlockToken({ ...name, table: 'activity_versions' }, start, end);
    await storeFolding({ count: rows.length, token, triedBefore, notes, insert: insertInto('activity_versions') });
  };
}
