import { randomBytes } from 'node:crypto';
import { createTables, testStores } from '@playline/testkit';

/** A new database with all tables. */
export interface OwnDatabase {
  readonly target: { url: string; user: string; password: string; database: string };
  /** Runs a statement. @throws Error with ClickHouse's message */
  readonly command: (sql: string) => Promise<void>;
  /** Sends a query over HTTP with the limits of analyst accounts. @throws Error with ClickHouse's message */
  readonly query: (sql: string | FormData, search?: Readonly<Record<string, string>>) => Promise<Response>;
  close(): Promise<void>;
}

/** The limits of analyst accounts (infra/clickhouse/users.xml). */
const ANALYST_LIMITS = { readonly: '2', max_execution_time: '60', max_memory_usage: '2000000000' };

export async function openOwnDatabase(): Promise<OwnDatabase> {
  const target = { ...testStores().clickhouse, database: `playline_test_${randomBytes(6).toString('hex')}` };
  await createTables(target);
  const headers = { 'x-clickhouse-user': target.user, 'x-clickhouse-key': target.password };
  const post = async (body: string | FormData, search: Readonly<Record<string, string>>) => {
    const query = new URLSearchParams({ database: target.database, ...search });
    const response = await fetch(`${target.url}/?${query}`, { method: 'POST', headers, body });
    if (!response.ok) throw new Error(await response.text());
    return response;
  };
  const command = async (sql: string) => void (await (await post(sql, {})).text());
  return {
    target,
    command,
    query: (sql, search = {}) => post(sql, { ...search, ...ANALYST_LIMITS }),
    close: () => command(`DROP DATABASE ${target.database} SYNC`),
  };
}
