import { type StoreCalls, storeFolding, toBlockToken } from '@playline/stream';
import type { TimedRows } from './timed-block.ts';

/** Rows of one table, with the token that names exactly this set of them. */
interface Insert<R, T extends string> {
  readonly table: T;
  readonly rows: readonly R[];
  readonly token: string;
  readonly signal: AbortSignal;
}

export interface WriteFoldingParts<R, T extends string> {
  /** All tables that get something of the row. */
  readonly tablesOf: (row: R) => readonly T[];
  readonly insert: (rows: Insert<R, T>) => Promise<void>;
  readonly calls: StoreCalls;
}

/**
 * Creates the step that stores a block's rows in folding tables: of all rows about one thing the one with the largest
 * revision, or the latest time, counts.
 */
export function createWriteFolding<R, T extends string>({ tablesOf, insert, calls }: WriteFoldingParts<R, T>) {
  return async ({ rows, block, notes, signal }: TimedRows<R>): Promise<void> => {
    const byTable = new Map<T, R[]>();
    for (const row of rows)
      for (const table of tablesOf(row)) {
        const own = byTable.get(table);
        if (own === undefined) byTable.set(table, [row]);
        else own.push(row);
      }
    for (const [table, own] of byTable) {
      const insertAsked = (asked: readonly number[], token: string) =>
        calls.insert(table, asked.length, () => insert({ table, rows: asked.map((row) => own[row]!), token, signal }));
      const token = toBlockToken(block, table, block.start, block.end);
      const triedBefore = block.triedBefore ?? false;
      await storeFolding({ count: own.length, token, triedBefore, notes, insert: insertAsked });
    }
  };
}
