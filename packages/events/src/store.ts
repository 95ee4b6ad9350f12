export { type FaultKind, StoreFault } from '@playline/stores';

/** Tables with partition and offset. */
export type OffsetTable = 'events' | 'identity_links' | 'consent_log' | 'message_rejections';
/** Tables without partition and offset, in which copies of a row fold into one. */
const FOLDING_TABLES = ['identity_overrides', 'identity_unlinks', 'audit_log'] as const;
type FoldingTable = (typeof FOLDING_TABLES)[number];
export type EventTable = OffsetTable | FoldingTable;

export function isFolding(table: EventTable): table is FoldingTable {
  return FOLDING_TABLES.some((name) => name === table);
}

export interface BlockInsert {
  table: EventTable;
  /** RowBinary, columns in the order of `EVENT_TABLE_COLUMNS`; not changed until the promise settles. */
  rows: Buffer;
  /** Identifies exactly these rows: a repeated token is not stored again. */
  token: string;
  signal: AbortSignal;
}

export interface OffsetRange {
  partition: number;
  start: number;
  end: number;
}

export interface StoredRowsQuery extends OffsetRange {
  /** RowBinary, at least one. Their times and keys limit what is read. */
  rows: readonly Buffer[];
}

export interface EventStore {
  /**
   * Stores the block once per token. After a crash of the store it may resolve without storing, so call `storedOffsets`
   * for a block that was tried before.
   * @throws StoreFault
   */
  insert(block: BlockInsert): Promise<void>;
  /** Offsets of the stored ones of these rows. Also completes the tables derived from them. @throws StoreFault */
  storedOffsets(table: OffsetTable, query: StoredRowsQuery): Promise<ReadonlySet<number>>;
  ready(): Promise<boolean>;
  close(): Promise<void>;
}
