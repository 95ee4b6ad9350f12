import { randomBytes } from 'node:crypto';

export interface ClickHouseAddress {
  url: string;
  user: string;
  password: string;
}

/** Runs one statement over HTTP. @throws Error with the message of the server */
export async function queryClickHouse(
  address: ClickHouseAddress,
  sql: string,
  options: { settings?: Record<string, string>; body?: string } = {},
): Promise<string> {
  const parameters = new URLSearchParams({
    ...options.settings,
    ...(options.body === undefined ? {} : { query: sql }),
  });
  const answer = await fetch(`${address.url}/?${parameters}`, {
    method: 'POST',
    headers: { 'x-clickhouse-user': address.user, 'x-clickhouse-key': address.password },
    body: options.body ?? sql,
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(text.slice(0, 300));
  return text.trim();
}

/** A table that keeps every row, except those of an insert whose token it has seen. So a count shows doubled rows. */
export interface TestTable {
  readonly name: string;
  /** Number of rows, of distinct offsets, and of missing offsets below the last one of each partition. */
  count(): Promise<{ rows: number; different: number; missing: number }>;
  /** Drops it. */
  close(): Promise<void>;
}

export async function openTestTable(address: ClickHouseAddress): Promise<TestTable> {
  const database = `playline_test_stream_${randomBytes(4).toString('hex')}`;
  const name = `${database}.rows`;
  await queryClickHouse(address, `CREATE DATABASE ${database}`);
  await queryClickHouse(
    address,
    `CREATE TABLE ${name} (partition UInt32, offset UInt64) ENGINE = MergeTree ORDER BY (partition, offset)
     SETTINGS non_replicated_deduplication_window = 1000`,
  );
  return {
    name,
    async count() {
      const text = await queryClickHouse(
        address,
        `SELECT sum(c), sum(u), sum(m + 1 - u) FROM (
           SELECT count() c, uniqExact(offset) u, max(offset) m FROM ${name} GROUP BY partition) FORMAT TSV`,
      );
      const [rows = 0, different = 0, missing = 0] = text.split('\t').map(Number);
      return { rows, different, missing };
    },
    close: async () => void (await queryClickHouse(address, `DROP DATABASE IF EXISTS ${database}`)),
  };
}
