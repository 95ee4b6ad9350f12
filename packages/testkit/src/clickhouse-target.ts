import { randomBytes } from 'node:crypto';
import type { Stores } from './stores.ts';

/** A database of a ClickHouse, and an account that may do everything in it. */
export type DatabaseTarget = Stores['clickhouse'] & { readonly database: string };

/** A name that no other database has, and that the services' accounts may use. */
export const toDatabaseName = (): string => `playline_test_${randomBytes(6).toString('hex')}`;

/** Sends one statement, without a deadline. @returns the whole answer @throws Error with all words of ClickHouse */
export async function runStatement({ url, user, password, database }: DatabaseTarget, sql: string): Promise<string> {
  const account = { 'x-clickhouse-user': user, 'x-clickhouse-key': password, 'x-clickhouse-database': database };
  // Otherwise ClickHouse compresses the answer, which takes longer than most statements.
  const headers = { ...account, 'accept-encoding': 'identity' };
  const answer = await fetch(url, { method: 'POST', headers, body: sql });
  const text = await answer.text();
  if (!answer.ok) throw new Error(text);
  return text.trim();
}
