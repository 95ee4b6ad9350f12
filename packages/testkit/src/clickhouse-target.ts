import { randomBytes } from 'node:crypto';
import type { Stores } from './stores.ts';

/** A database of a ClickHouse, and an account that may do everything in it. */
export type DatabaseTarget = Stores['clickhouse'] & { readonly database: string };

/** A name that no other database has, and that the services' accounts may use. */
export const toDatabaseName = (): string => `playline_test_${randomBytes(6).toString('hex')}`;

/** Headers of a request. Its answer comes as it is: to compress and to unpack it takes both sides time. */
export const toHeaders = ({ user, password }: Pick<DatabaseTarget, 'user' | 'password'>): Record<string, string> => ({
  'x-clickhouse-user': user,
  'x-clickhouse-key': password,
  'accept-encoding': 'identity',
});

/** Sends one statement, without a deadline. @returns the whole answer @throws Error with all words of ClickHouse */
export async function runStatement(target: DatabaseTarget, sql: string): Promise<string> {
  const headers = { ...toHeaders(target), 'x-clickhouse-database': target.database };
  const answer = await fetch(target.url, { method: 'POST', headers, body: sql });
  const text = await answer.text();
  if (!answer.ok) throw new Error(text);
  return text.trim();
}
