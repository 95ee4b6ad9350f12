import { METADATA_TABLES, type MetadataRow, type MintRow, type MintTable, type MintWriter } from '@playline/mints';
import { type StoreCalls, storeFolding, toBlockToken } from '@playline/stream';
import type { TimedRows } from '../blocks/timed-block.ts';

type Row = MintRow | MetadataRow;

const tableOf = (row: Row): MintTable => ('kind' in row ? METADATA_TABLES[row.kind] : 'mint_requests');

/**
 * Creates the step that stores a block's states of mint requests, or its metadata. Of an attempt the row with the greatest
 * revision is true, of a subject of metadata the one with the greatest time, and copies are one.
 */
export function createWriteMints({ store, calls }: { store: Pick<MintWriter, 'insert'>; calls: StoreCalls }) {
  return async <R extends Row>({ rows, block, transformVersion, notes, signal }: TimedRows<R>): Promise<void> => {
    for (const [table, own] of Map.groupBy(rows, tableOf)) {
      const insert = (asked: readonly number[], token: string) =>
        calls.insert(table, asked.length, () =>
          store.insert({ table, rows: asked.map((row) => own[row]!), token, signal }),
        );
      const token = toBlockToken({ block, table, transformVersion }, block.start, block.end);
      await storeFolding({ count: own.length, token, triedBefore: block.triedBefore ?? false, notes, insert });
    }
  };
}
