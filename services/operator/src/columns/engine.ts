import { type ClickHouseAccount, createQueryRows, readRows, sendStatement } from '@playline/stores';

/** ClickHouse with the `events` table. */
export interface Engine {
  /** Large integers are text. */
  read(sql: string): Promise<(readonly unknown[])[]>;
  /** @throws Error of the network, or of ClickHouse */
  run(sql: string): Promise<void>;
}

/** Statements only start a mutation. */
const STATEMENT_MAX_MS = 60_000;

export function createEngine(account: ClickHouseAccount): Engine {
  const query = createQueryRows(account);
  return {
    read: (sql) => readRows(query(sql)),
    async run(sql) {
      // Otherwise an error after the first bytes of an answer would look like success.
      const settings = { wait_end_of_query: '1' };
      await (await sendStatement(account, { body: sql, settings, deadlineMs: STATEMENT_MAX_MS })).text();
    },
  };
}
