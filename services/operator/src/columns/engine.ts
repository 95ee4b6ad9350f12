import { type ClickHouseAccount, createQueryRows, readRows, sendStatement } from '@playline/stores';

/** The database whose events get columns. */
export interface Engine {
  /** All rows of a short answer, each an array of its columns; large integers are text. */
  read(sql: string): Promise<(readonly unknown[])[]>;
  /** Runs a statement without an answer. @throws Error of the network, or with the answer of ClickHouse */
  run(sql: string): Promise<void>;
}

/** Statements only start a change; its end is waited for by queries. */
const STATEMENT_MAX_MS = 60_000;

export function createEngine(account: ClickHouseAccount): Engine {
  const query = createQueryRows(account);
  return {
    read: (sql) => readRows(query(sql)),
    async run(sql) {
      // Without it, an error after the first bytes of an answer would look like success.
      const settings = { wait_end_of_query: '1' };
      await (await sendStatement(account, { body: sql, settings, deadlineMs: STATEMENT_MAX_MS })).text();
    },
  };
}
