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
  return {
    read: (sql) => readRows(query(sql)),
    async run(sql) {
      // A fault behind the first bytes of an answer would otherwise look like success.
      const settings = { wait_end_of_query: '1' };
      await (await askClickHouse(account, { body: sql, settings, deadlineMs: STATEMENT_MAX_MS })).text();
    },
  };
}
