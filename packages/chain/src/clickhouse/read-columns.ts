import type { ActivityRow } from '../rows.ts';

export const toAddress = (column: string): string => `concat('0x', lower(hex(${column})))`;

/** Columns of every stored row about its place in the log. */
export const LOGGED_COLUMNS =
  'toUnixTimestamp64Micro(updated_at) AS updatedAt, trace_id AS traceId, ' +
  'toUnixTimestamp64Milli(logged_at) AS loggedAtMs, kafka_partition AS partition, kafka_offset AS offset';

export const ACTIVITY_COLUMNS: string =
  `chain, toString(id) AS uuid, type, ${toAddress('contract')} AS contractAddress, ` +
  `toUnixTimestamp64Micro(indexed_at) AS indexedAt, ${toAddress('transaction_hash')} AS transactionHash, ` +
  'toString(block_number) AS blockNumber, toString(transaction_index) AS transactionIndex, ' +
  `toString(log_index) AS logIndex, details, ${LOGGED_COLUMNS}`;

/** The alias `uuid` differs from the indexed column `id`, because ClickHouse would use the alias in conditions. */
export interface StoredActivity extends Omit<ActivityRow, 'blockchainMetadata' | 'id'> {
  readonly uuid: string;
  readonly transactionHash: string | null;
  readonly blockNumber: string | null;
  readonly transactionIndex: string | null;
  readonly logIndex: string | null;
}

export function toActivity(stored: StoredActivity): ActivityRow {
  const { uuid, transactionHash, blockNumber, transactionIndex, logIndex, ...rest } = stored;
  const row = { ...rest, id: uuid };
  if (transactionHash === null || blockNumber === null || transactionIndex === null)
    return { ...row, blockchainMetadata: null };
  return { ...row, blockchainMetadata: { transactionHash, blockNumber, transactionIndex, logIndex } };
}
