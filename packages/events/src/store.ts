export { type FaultKind, StoreFault } from '@playline/errors';

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
 * Tables whose rows do not name their place in the log: the place of the decision, or which change of what they follow
 * from, is part of what they say, so a row written twice is one row at once.
 */
export const FOLDING_TABLES = [
  'identity_overrides',
  'identity_unlinks',
  'audit_log',
] as const satisfies readonly EventTable[];
export type FoldingTable = (typeof FOLDING_TABLES)[number];

/** Tables whose rows name their place in the log. */
export type OffsetTable = Exclude<EventTable, FoldingTable>;

export function isFolding(table: EventTable): table is FoldingTable {
  return FOLDING_TABLES.some((name) => name === table);
}

/** Rows of one block for one table. */
export interface BlockInsert {
  table: EventTable;
  /** RowBinary, columns in the order of `EVENT_TABLE_COLUMNS`; not changed until the promise settles. */
  rows: Buffer;
  /** Names exactly this set of rows: the same token again is stored once. Other rows under it would be lost. */
  token: string;
  signal: AbortSignal;
}

/** Offsets of one partition from `start` to before `end`. */
export interface OffsetRange {
  partition: number;
  start: number;
  end: number;
}

/** A question for rows that may stand. */
export interface StoredQuestion extends OffsetRange {
  /** RowBinary, at least one. Their times and keys bound what is read; what they are told by says which stored row is theirs. */
  rows: readonly Buffer[];
}

/** Where events, decisions about identities, consents and rejections are kept for analysts, and the audit for who runs all this. */
export interface EventStore {
  /**
   * Stores the block once, however often it is called with the same token. Resolves also when the store remembers the
   * token without its rows, after a crash between the two: of a block that was tried before, ask `storedOffsets`.
   * @throws StoreFault
   */
  insert(block: BlockInsert): Promise<void>;
  /**
   * Which of these rows stand, by their offsets; what other tables derive from events that do stands too when it
   * resolves. Reads no more than what their times and keys allow. @throws StoreFault
   */
  storedOffsets(table: OffsetTable, question: StoredQuestion): Promise<ReadonlySet<number>>;
  /** True when the store answers, and lets us in. */
  ready(): Promise<boolean>;
  close(): Promise<void>;
}
