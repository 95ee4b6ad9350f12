import { randomBytes } from 'node:crypto';
import { applySql } from '@playline/infra/clickhouse';
import { type Stores, testStores } from './stores.ts';

/** A database with every table, under a name that no other test has. */
export interface OwnDatabase {
  readonly target: Stores['clickhouse'] & { readonly database: string };
  /** Sends one statement about the database. @throws Error with the words of ClickHouse */
  query(sql: string): Promise<string>;
  /** Drops the database. */
  close(): Promise<void>;
}

export async function openOwnDatabase(stores: Stores = testStores()): Promise<OwnDatabase> {
  const { url, user, password } = stores.clickhouse;
  const database = `playline_test_${randomBytes(6).toString('hex')}`;
  const target = { url, user, password, database };
  await applySql(target);
  const headers = { 'x-clickhouse-user': user, 'x-clickhouse-key': password, 'x-clickhouse-database': database };
  const query = async (body: string) => {
    const answer = await fetch(url, { method: 'POST', headers, body });
    const text = await answer.text();
    if (!answer.ok) throw new Error(text);
    return text.trim();
  };
  return { target, query, close: async () => void (await query(`DROP DATABASE ${database} SYNC`)) };
}
