import type { ClickHouseClient } from '@clickhouse/client';
import { createColumnReader } from '../row/row-columns.ts';
import { quote, quoteBytes } from './literals.ts';

/** Tables that materialized views fill from `events`, and the view of a span that each is filled again from. */
const DERIVED = [
  { table: 'identity_days', from: 'derived_identity_days' },
  { table: 'identities', from: 'derived_identities' },
] as const;

/**
 * Derives again what follows from events that may stand. The engine writes the rows of an insert and what its views make
 * of them one after the other: of one that was cut off, only the first may stand, and rows that stand are not inserted
 * again. What is derived twice folds.
 *
 * Bounded by the times and the owners of the rows, as what is asked for them is.
 * @param rows RowBinary of `events`, at least one
 */
export async function deriveAgain(client: ClickHouseClient, rows: readonly Buffer[]): Promise<void> {
  const read = createColumnReader('events', ['environment_id', 'identity_key', 'event_time']);
  const owners = new Set<string>();
  let [since, until] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const row of rows) {
    const [environment, key, time] = read(row);
    owners.add(`(${quote(String(environment))}, ${quoteBytes(key as Buffer)})`);
    since = Math.min(since, Number(time));
    until = Math.max(until, Number(time) + 1);
  }
  const span = `since = '${toText(since)}', until = '${toText(until)}'`;
  for (const { table, from } of DERIVED) {
    const query = `INSERT INTO ${table} SELECT * FROM ${from}(${span}) WHERE (environment_id, identity_key) IN (${[...owners].join(', ')})`;
    await client.command({
      query,
      clickhouse_settings: { max_query_size: String(262_144 + Buffer.byteLength(query)), wait_end_of_query: 1 },
    });
  }
}

/** As the engine reads a time of a parameter, in UTC. */
const toText = (ms: number) => new Date(ms).toISOString().replace('T', ' ').replace('Z', '');
