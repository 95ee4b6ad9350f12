import { askClickHouse, type ClickHouseAccount, createQueryRows, readRows } from '@playline/runtime';

/** The database whose events get columns. */
export interface Engine {
  /** All rows of a short answer, each an array of its columns; large integers come as text. */
  read(sql: string): Promise<(readonly unknown[])[]>;
  /** Runs a statement without an answer. @throws Error of the network, or with what ClickHouse answered */
  run(sql: string): Promise<void>;
}

/** A change is only noted by its statement, and waited for by questions. */
const STATEMENT_MAX_MS = 60_000;

export function createEngine(account: ClickHouseAccount): Engine {
  const query = createQueryRows(account);
  const headers = { 'X-ClickHouse-User': account.user, 'X-ClickHouse-Key': account.password };
  return {
    read: (sql) => readRows(query(sql)),
    async run(sql) {
      const url = new URL(account.url);
      url.searchParams.set('database', account.database);
      // A fault behind the first bytes of an answer would otherwise look like success.
      url.searchParams.set('wait_end_of_query', '1');
      const signal = AbortSignal.timeout(STATEMENT_MAX_MS);
      await (await askClickHouse(account, url, { method: 'POST', headers, body: sql, signal })).text();
    },
  };
}
