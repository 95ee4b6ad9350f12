import { toHeaders } from '@playline/testkit';

export interface QueryOptions {
  readonly search?: string;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
}

export interface QueryResult {
  readonly ok: boolean;
  readonly text: string;
}

export interface Accounts {
  query(account: string, sql: string, options?: QueryOptions): Promise<QueryResult>;
  runAsOperator(sql: string): Promise<string>;
}

export function createAccounts(url: string, passwordOf: Readonly<Record<string, string>>): Accounts {
  const query: Accounts['query'] = async (account, sql, { search = '', headers = {}, signal } = {}) => {
    const credentials = toHeaders({ user: account, password: passwordOf[account] ?? '' });
    // The engine closes idle connections after 3 s.
    const request = {
      method: 'POST',
      headers: { connection: 'close', ...credentials, ...headers },
      body: sql,
      ...(signal && { signal }),
    };
    const database = search.includes('&database=') ? '' : '&database=playline';
    // Without waiting, an error after the first rows would end the connection.
    const response = await fetch(`${url}/?wait_end_of_query=1${database}${search}`, request);
    return { ok: response.ok, text: await response.text() };
  };
  const runAsOperator = async (sql: string) => {
    const { ok, text } = await query('operator', sql);
    if (!ok) throw new Error(text);
    return text;
  };
  return { query, runAsOperator };
}
