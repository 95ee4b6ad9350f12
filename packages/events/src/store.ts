export { type FaultKind, StoreFault } from '@playline/stores';

/** Tables with the columns kafka_partition and kafka_offset. */
export type OffsetTable = 'events' | 'identity_links' | 'consent_log' | 'message_rejections';
/** Tables without Kafka positions, in which copies of a row are merged. */
const FOLDING_TABLES = ['identity_overrides', 'identity_unlinks', 'audit_log'] as const;
type FoldingTable = (typeof FOLDING_TABLES)[number];
export type EventTable = OffsetTable | FoldingTable;

export function isFolding(table: EventTable): table is FoldingTable {
  return FOLDING_TABLES.some((name) => name === table);
}

/** Lengths of the intervals in `event_counts` and `event_delays`, in seconds. Each is a multiple of the one before. */
export const COUNT_STEPS_S = [60, 600, 3_600, 14_400] as const;

export interface BlockInsert {
  table: EventTable;
  /** RowBinary with the columns of `EVENT_TABLE_COLUMNS`; must not change until the promise settles. */
  rows: Buffer;
  /** Deduplication token of these rows. Rows with a known token are not stored again. */
  token: string;
  signal: AbortSignal;
}

export interface OffsetRange {
  partition: number;
  start: number;
  end: number;
}

export interface StoredRowsQuery extends OffsetRange {
  /** At least one RowBinary row. The times and keys limit the rows that are read. */
  rows: readonly Buffer[];
}

export interface EventStore {
  /**
   * Stores the block once per token. After a crash of the store, the promise may resolve although no rows were stored,
   * so call `storedOffsets` for a block that was tried before.
   * @throws StoreFault
   */
  insert(block: BlockInsert): Promise<void>;
  /** Returns the offsets of stored rows, and completes the tables derived from them. @throws StoreFault */
  storedOffsets(table: OffsetTable, query: StoredRowsQuery): Promise<ReadonlySet<number>>;
  ready(): Promise<boolean>;
  close(): Promise<void>;
}
