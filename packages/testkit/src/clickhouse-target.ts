import { randomBytes } from 'node:crypto';
import type { Stores } from './stores.ts';

/** A database in ClickHouse, with an account that has all rights on it. */
export type DatabaseTarget = Stores['clickhouse'] & { readonly database: string };

/** A unique database name that the service accounts may use. */
export const toDatabaseName = (): string => `playline_test_${randomBytes(6).toString('hex')}`;

/** Request headers. The response is not compressed, because compression costs both sides time. */
export const toHeaders = ({ user, password }: Pick<DatabaseTarget, 'user' | 'password'>): Record<string, string> => ({
  'x-clickhouse-user': user,
  'x-clickhouse-key': password,
  'accept-encoding': 'identity',
});

/** Sends a statement without a deadline. @throws Error with ClickHouse's message */
export async function runStatement(target: DatabaseTarget, sql: string): Promise<string> {
  const headers = { ...toHeaders(target), 'x-clickhouse-database': target.database };
  const response = await fetch(target.url, { method: 'POST', headers, body: sql });
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  return text.trim();
}
