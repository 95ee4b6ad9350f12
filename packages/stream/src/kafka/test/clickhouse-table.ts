import { randomBytes } from 'node:crypto';
import { runStatement, testStores } from '@playline/testkit';

/** A table that stores the rows of every insert with a new token, so that duplicate rows can be counted. */
export interface TestTable {
  readonly name: string;
  /** Returns the number of rows, distinct offsets, and offsets missing below the last offset of each partition. */
  count(): Promise<{ rows: number; distinct: number; missing: number }>;
  close(): Promise<void>;
}

export async function openTestTable(): Promise<TestTable> {
  const query = (sql: string) => runStatement({ ...testStores().clickhouse, database: 'default' }, sql);
  const database = `playline_test_stream_${randomBytes(4).toString('hex')}`;
  const name = `${database}.rows`;
  await query(`CREATE DATABASE ${database}`);
  await query(
    `CREATE TABLE ${name} (partition UInt32, offset UInt64) ENGINE = MergeTree ORDER BY (partition, offset)
     SETTINGS non_replicated_deduplication_window = 1000`,
  );
  return {
    name,
    async count() {
      const text = await query(
        `SELECT sum(c), sum(u), sum(m + 1 - u) FROM (
           SELECT count() c, uniqExact(offset) u, max(offset) m FROM ${name} GROUP BY partition) FORMAT TSV`,
      );
      const [rows = 0, distinct = 0, missing = 0] = text.split('\t').map(Number);
      return { rows, distinct, missing };
    },
    close: async () => void (await query(`DROP DATABASE IF EXISTS ${database}`)),
  };
}
