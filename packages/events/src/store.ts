export { type FaultKind, StoreFault } from '@playline/stores';

/** Tables that are written in blocks. */
export const EVENT_TABLES = [
  'events',
  'identity_links',
  'identity_overrides',
  'identity_unlinks',
  'consent_log',
  'message_rejections',
  'audit_log',
] as const;
export type EventTable = (typeof EVENT_TABLES)[number];

/**
 * Tables whose rows do not contain their place in the log. What identifies the change is part of the row, so copies of
 * a row fold into one.
 */
export const FOLDING_TABLES = [
  'identity_overrides',
  'identity_unlinks',
  'audit_log',
] as const satisfies readonly EventTable[];
export type FoldingTable = (typeof FOLDING_TABLES)[number];

/** Tables whose rows contain their place in the log. */
export type OffsetTable = Exclude<EventTable, FoldingTable>;

export function isFolding(table: EventTable): table is FoldingTable {
  return FOLDING_TABLES.some((name) => name === table);
}

/** Rows of one block for one table. */
export interface BlockInsert {
  table: EventTable;
  /** RowBinary, columns in the order of `EVENT_TABLE_COLUMNS`; not changed until the promise settles. */
  rows: Buffer;
  /** Names exactly this set of rows. A repeated token is not stored again, so other rows under it would be lost. */
  token: string;
  signal: AbortSignal;
}

/** Offsets of one partition from `start` to before `end`. */
export interface OffsetRange {
  partition: number;
  start: number;
  end: number;
}

/** Rows that may be stored already, and where. */
export interface StoredRowsQuery extends OffsetRange {
  /**
   * RowBinary, at least one. Their times and keys limit what is read, and tell them from other rows at the same offset.
   */
  rows: readonly Buffer[];
}

/**
 * Store of events, decisions about identities, consents and rejections, for analysts, and of the audit, for operators.
 */
export interface EventStore {
  /**
   * Stores the block once per token. After a crash of the store between recording the token and storing the rows, it
   * resolves without storing them. So ask `storedOffsets` about a block that was tried before.
   * @throws StoreFault
   */
  insert(block: BlockInsert): Promise<void>;
  /**
   * Offsets of those of these rows that are stored. When it resolves, the tables derived from them are complete too.
   * Reads only where the times and keys of the rows may lie. @throws StoreFault
   */
  storedOffsets(table: OffsetTable, question: StoredRowsQuery): Promise<ReadonlySet<number>>;
  /** True when the store answers and accepts the credentials. */
  ready(): Promise<boolean>;
  close(): Promise<void>;
}
