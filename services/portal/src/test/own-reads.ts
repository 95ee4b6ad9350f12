import { createQueryRows, type QueryRows } from '@playline/stores';
import { openOwnDatabase } from '@playline/testkit';
import { createPortalReads, type PortalReads } from '../reads/index.ts';

/** The portal's reads of a database that no other test uses. */
export interface OwnReads {
  readonly reads: PortalReads;
  readonly query: QueryRows;
  /** Sends one statement. @throws Error with the message of ClickHouse */
  send(sql: string): Promise<string>;
  insert(table: string, rows: readonly object[]): Promise<string>;
  /** Drops the database. */
  close(): Promise<void>;
}

export async function openOwnReads(): Promise<OwnReads> {
  const { target, query: send, close } = await openOwnDatabase();
  const query = createQueryRows(target);
  return {
    reads: createPortalReads(query),
    query,
    send,
    close,
    insert: (table, rows) =>
      send(`INSERT INTO ${table} FORMAT JSONEachRow ${rows.map((row) => JSON.stringify(row)).join(' ')}`),
  };
}

/** A time as ClickHouse reads it. @param ms epoch milliseconds */
export const toSqlTime = (ms: number): string => new Date(ms).toISOString().replace('T', ' ').replace('Z', '');
