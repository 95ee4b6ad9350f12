import {
  type ActivityRow,
  type ActivityStore,
  type ChainInsert,
  type ChainTable,
  findSupersessions,
  partOfActivity,
  type Supersession,
} from '@playline/chain';
import { type StoreCalls, storeFolding, storeOnce, toBlockToken } from '@playline/stream';
import type { TimedRows } from './timed-block.ts';

/**
 * Creates the step that stores a block's activities once. First the versions (`activities`), then the list of versions
 * of each activity (`activity_ids`), then what readers get, with marks of the superseded versions (`activity_feeds`).
 * All of it is stored before the watermark covers it, and after all earlier blocks.
 */
export function createWriteActivities({ store, calls }: { store: ActivityStore; calls: StoreCalls }) {
  /**
   * The rows, and those of an earlier attempt that this one would not write, because their records are gone, cannot be
   * read any more or have other times now. Those are in `activities`, so they count as versions; in the other tables
   * they may be missing.
   */
  const withStanding = async ({ rows, block, after, end }: TimedRows<ActivityRow>): Promise<readonly ActivityRow[]> => {
    const standing = await calls.ask('activities', () => store.standingBetween(block.partition, after, end));
    const all = new Map([...standing, ...rows].map((row) => [`${row.chain} ${row.updatedAt} ${row.id}`, row]));
    return [...all.values()].toSorted((a, b) => a.updatedAt - b.updatedAt);
  };
  return async (given: TimedRows<ActivityRow>): Promise<void> => {
    const { rows, block, notes, signal } = given;
    const { start, end, triedBefore = false } = block;
    const createInsert =
      (table: ChainTable, of: readonly (ActivityRow | Supersession)[]) => (asked: readonly number[], token: string) => {
        const sent = { table, rows: asked.map((row) => of[row]!), token, signal } as ChainInsert;
        return calls.insert(table, asked.length, () => store.insert(sent));
      };
    if (rows.length > 0)
      await storeOnce({
        ...{ start, end, triedBefore, notes },
        tokenOf: (from, to) => toBlockToken(block, 'activities', from, to),
        rows: {
          count: rows.length,
          offsetOf: (row) => rows[row]!.offset,
          partOf: (row) => partOfActivity(rows[row]!),
          insert: createInsert('activities', rows),
          storedOffsets: (asked) => calls.ask('activities', () => store.storedOffsets(asked.map((row) => rows[row]!))),
        },
      });
    const storeFolded = (table: 'activity_ids' | 'activity_feeds', of: readonly (ActivityRow | Supersession)[]) =>
      storeFolding({
        ...{ count: of.length, token: toBlockToken(block, table, start, end), triedBefore, notes },
        insert: createInsert(table, of),
      });
    const all = given.isRecovered ? await withStanding(given) : rows;
    await storeFolded('activity_ids', all);
    const supersessions = await findSupersessions(all, (...asked) =>
      calls.ask('activity_ids', () => store.lastBefore(...asked)),
    );
    await storeFolded('activity_feeds', [...all, ...supersessions]);
  };
}
