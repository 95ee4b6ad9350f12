import { randomBytes } from 'node:crypto';
import type { Stores } from './stores.ts';

/** A ClickHouse database and an account with all privileges on the database. */
export type DatabaseTarget = Stores['clickhouse'] & { readonly database: string };

/** Returns a unique database name that matches the grants of the service accounts. */
export const toDatabaseName = (): string => `playline_test_${randomBytes(6).toString('hex')}`;

/** Returns the request headers. Disables compression, which would only cost CPU time on a local connection. */
export const toHeaders = ({ user, password }: Pick<DatabaseTarget, 'user' | 'password'>): Record<string, string> => ({
  'x-clickhouse-user': user,
  'x-clickhouse-key': password,
  'accept-encoding': 'identity',
});

/** Executes a statement without a timeout. @throws Error with ClickHouse's message */
export async function runStatement(target: DatabaseTarget, sql: string): Promise<string> {
  const headers = { ...toHeaders(target), 'x-clickhouse-database': target.database };
  const response = await fetch(target.url, { method: 'POST', headers, body: sql });
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  return text.trim();
}
