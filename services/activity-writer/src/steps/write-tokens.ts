import type { ActivityStore, TokenRow } from '@playline/chain';
import { type StoreCalls, storeFolding, toBlockToken } from '@playline/stream';
import type { TimedRows } from '../blocks/timed-block.ts';

/** Creates the step that stores a block's tokens: of a token the row with the greatest time is true, and copies are one. */
export function createWriteTokens({ store, calls }: { store: ActivityStore; calls: StoreCalls }) {
  return async ({ rows, block, transformVersion, notes, signal }: TimedRows<TokenRow>): Promise<void> => {
    if (rows.length === 0) return;
    const table = 'tokens';
    const insert = (asked: readonly number[], token: string) =>
      calls.insert(table, asked.length, () =>
        store.insert({ table, rows: asked.map((row) => rows[row]!), token, signal }),
      );
    const token = toBlockToken({ block, table, transformVersion }, block.start, block.end);
    await storeFolding({ count: rows.length, token, triedBefore: block.triedBefore ?? false, notes, insert });
  };
}
