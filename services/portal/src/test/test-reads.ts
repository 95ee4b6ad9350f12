import { createQueryRows } from '@playline/stores';
import { openOwnDatabase } from '@playline/testkit';
import { createPortalReads } from '../reads/index.ts';

export type TestReads = Awaited<ReturnType<typeof openTestReads>>;

/** Opens portal reads on a separate database. `send` throws an error with the message from ClickHouse. */
export async function openTestReads() {
  const { target, query: send, close } = await openOwnDatabase();
  const query = createQueryRows(target);
  return {
    reads: createPortalReads(query),
    query,
    send,
    close,
    insert: (table: string, rows: readonly object[]) =>
      send(`INSERT INTO ${table} FORMAT JSONEachRow ${rows.map((row) => JSON.stringify(row)).join(' ')}`),
  };
}

/** Formats epoch milliseconds as a ClickHouse timestamp. */
export const toSqlTime = (ms: number): string => new Date(ms).toISOString().replace('T', ' ').replace('Z', '');
