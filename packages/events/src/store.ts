/** Tables that are written in blocks. */
export const EVENT_TABLES = [
  'events',
  'identity_links',
  'identity_overrides',
  'consent_log',
  'message_rejections',
] as const;
export type EventTable = (typeof EVENT_TABLES)[number];

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

/** Where events, decisions about identities, consents and rejections are kept for analysts. */
export interface EventStore {
  /** Stores the block once, however often it is called with the same token. @throws StoreFault */
  insert(block: BlockInsert): Promise<void>;
  /** Which offsets of a range have a row. For intents so old that the store may have forgotten the token. @throws StoreFault */
  storedOffsets(table: EventTable, range: OffsetRange): Promise<ReadonlySet<number>>;
  /** True when the store answers. */
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

/** A fault of the store. Whether trying again helps is decided where the fault is born. */
export class StoreFault extends Error {
  override readonly name = 'StoreFault';
  readonly retryable: boolean;

  constructor(message: string, options: { retryable: boolean; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.retryable = options.retryable;
  }
}
