import { parseTimestampMicros } from '@playline/contracts';
import { askClickHouse, type ClickHouseAccount, createQueryRows, readRows } from '@playline/stores';
import { awaitClickHouse } from '../await-store.ts';
import type { Activity } from './history.ts';
import type { ReplicaTarget } from './replicate.ts';

/** A page has some hundred rows; an insert that takes longer hangs. */
const INSERT_MAX_MS = 60_000;

const toTableSql = (table: string) => `CREATE TABLE IF NOT EXISTS ${table}
(
    chain LowCardinality(String) COMMENT 'Name of the chain',
    id UUID COMMENT 'Which activity',
    updated_at DateTime64(6, 'UTC') COMMENT 'Which version of it: the latest holds',
    indexed_at DateTime64(6, 'UTC') COMMENT 'When the activity was seen on the chain',
    type LowCardinality(String) COMMENT 'mint, burn, transfer, sale, deposit or withdrawal',
    details String COMMENT 'JSON of what belongs to the type',
    blockchain_metadata String COMMENT 'JSON of its place on the chain, or null'
)
ENGINE = ReplacingMergeTree(updated_at)
ORDER BY (chain, id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Copy of a history of activities. Read with FINAL, or the row with the greatest updated_at'`;

/**
 * Opens the table of a copy, and creates it if necessary. It is a folding table with the key chain and id, so a
 * repeated page changes nothing that FINAL shows. Its mark is the time of the last written version, in epoch
 * microseconds: a table that was dropped, emptied or restored from a backup lacks it.
 * @param table name within the account's database: letters, digits and `_`
 * @throws UnreachableError when the server does not answer; Error with its answer, and for a table that has less than
 * was noted
 */
export async function openClickHouseTarget(
  account: ClickHouseAccount,
  { chain, table }: { chain: string; table: string },
  mark: number | null,
): Promise<ReplicaTarget> {
  const query = createQueryRows(account);
  await awaitClickHouse(query);
  await execute(account, toTableSql(table), '');
  const last = `SELECT toUnixTimestamp64Micro(max(updated_at)) FROM ${table} WHERE chain = '${chain}'`;
  const [[held] = []] = await readRows(query(last));
  if (Number(held) < (mark ?? 0))
    throw new Error(`${table} holds less than its state says: remove the state, and copy from the beginning`);
  const columns = 'chain, id, updated_at, indexed_at, type, details, blockchain_metadata';
  return {
    async write(activities) {
      const lines = activities.map((activity) => JSON.stringify(toRow(chain, activity)));
      await execute(account, `INSERT INTO ${table} (${columns}) FORMAT JSONEachRow`, lines.join('\n'));
      return activities
        .map(({ updated_at }) => parseTimestampMicros(updated_at))
        .reduce((most, each) => Math.max(most, each), Number.NEGATIVE_INFINITY);
    },
    close: async () => {},
  };
}

function toRow(chain: string, { id, updated_at, indexed_at, type, details, blockchain_metadata }: Activity) {
  return {
    chain,
    id,
    updated_at,
    indexed_at,
    type,
    details: JSON.stringify(details),
    blockchain_metadata: JSON.stringify(blockchain_metadata),
  };
}

async function execute(account: ClickHouseAccount, statement: string, data: string): Promise<void> {
  const settings = {
    query: statement,
    async_insert: '0',
    date_time_input_format: 'best_effort',
    // Without it, an error after the first bytes of an answer would look like success.
    wait_end_of_query: '1',
  };
  const answer = await askClickHouse(account, { body: data, settings, deadlineMs: INSERT_MAX_MS });
  await answer.text();
}
