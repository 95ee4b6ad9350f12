import type { ActivityType, Direction } from '@playline/contracts';
import type { Gap, Position } from './cursor.ts';
import type { ActivityConstants, ActivityRow, TokenRow } from './rows.ts';

export const CHAIN_TABLES = ['activities', 'activity_ids', 'activity_feeds', 'tokens'] as const;
export type ChainTable = (typeof CHAIN_TABLES)[number];

export interface Supersession extends Position, ActivityConstants {
  /** The `updatedAt` of the next version. */
  readonly supersededAt: number;
}

/** A block's rows for one table. The watermark advances only after all tables are written. */
export type ChainInsert = {
  /** Deduplication token: rows sent again with the same token are not stored again. */
  readonly token: string;
  readonly signal: AbortSignal;
} & (
  | { readonly table: 'activities' | 'activity_ids'; readonly rows: readonly ActivityRow[] }
  | { readonly table: 'activity_feeds'; readonly rows: readonly (ActivityRow | Supersession)[] }
  | { readonly table: 'tokens'; readonly rows: readonly TokenRow[] }
);

/** Port to the store for the writer. Every method may throw a StoreFault. */
export interface ActivityStore {
  /** Inserts rows. After a store crash, may resolve without storing: check `storedOffsets` before retrying a block. */
  insert(block: ChainInsert): Promise<void>;
  /** Returns the offsets of the rows that are already stored in `activities`. */
  storedOffsets(rows: readonly ActivityRow[]): Promise<ReadonlySet<number>>;
  /** Returns the constant members by lower-case id, from the first version with the id on any chain. */
  constantsOf(ids: readonly string[]): Promise<ReadonlyMap<string, ActivityConstants>>;
  /** Returns the rows of `activities` with `after` < `updatedAt` <= `end`, including duplicates. */
  rowsBetween(partition: number, after: number, end: number): Promise<readonly ActivityRow[]>;
  /** Returns the `updatedAt` of the last version before `us`, by lower-case id. */
  lastBefore(us: number, chain: string, ids: readonly string[]): Promise<ReadonlyMap<string, number>>;
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

/** A null filter matches any value. The filtered members never change. */
export interface ActivityFilters {
  /** Inclusive, in epoch microseconds. */
  readonly fromIndexedAt: number | null;
  readonly toIndexedAt: number | null;
  /** In lower case. */
  readonly contractAddress: string | null;
  readonly type: ActivityType | null;
}

export interface PageQuery {
  readonly chain: string;
  readonly filters: ActivityFilters;
  readonly gap: Gap;
  readonly direction: Direction;
  /** At least 1. */
  readonly limit: number;
  /** In epoch microseconds. Pages contain only earlier rows. */
  readonly horizon: number;
}

export interface ShownActivity extends Position {
  readonly partition: number;
  /** The members after `chain` as JSON, without braces. */
  readonly members: Buffer;
}

/** Rows are in ascending order. */
export interface ActivityPage {
  readonly rows: readonly ShownActivity[];
  /** The query's gap if the page is empty. */
  readonly previous: Gap;
  /** No new version will appear before this gap. */
  readonly next: Gap;
}

/** Port to the store for readers. Every method may throw a StoreFault. */
export interface ChainStore {
  /** Reads activities next to a gap, each in its last version below the horizon. A short page may not be the last. */
  readPage(query: PageQuery): Promise<ActivityPage>;
  /** Returns null if the token is unknown. @param contractAddress in lower case */
  readToken(chain: string, contractAddress: string): Promise<TokenRow | null>;
  /** Returns the token of these chains that changed last; null if there is none. */
  findToken(chains: readonly string[]): Promise<TokenRow | null>;
  /** Reads the last version per chain and id, even above the horizon. @param ids in lower case, up to thousands */
  readActivities(ids: readonly string[]): Promise<readonly ActivityRow[]>;
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

export const NO_FILTERS: ActivityFilters = {
  fromIndexedAt: null,
  toIndexedAt: null,
  contractAddress: null,
  type: null,
};

/**
 * Finds the versions that a block supersedes: the version before each row, from the block or from earlier blocks.
 * @param rows of one partition, sorted by `updatedAt`; all earlier blocks must already be written
 */
export async function findSupersessions(
  rows: readonly ActivityRow[],
  lastBefore: ActivityStore['lastBefore'],
): Promise<Supersession[]> {
  const [first] = rows;
  if (first === undefined) return [];
  const found: Supersession[] = [];
  for (const [chain, rowsOfChain] of Map.groupBy(rows, (row) => row.chain)) {
    const last = new Map(await lastBefore(first.updatedAt, chain, [...new Set(rowsOfChain.map(({ id }) => id))]));
    for (const row of rowsOfChain) {
      const updatedAt = last.get(row.id);
      last.set(row.id, row.updatedAt);
      // The row is a duplicate.
      if (updatedAt === undefined || updatedAt >= row.updatedAt) continue;
      const { id, type, contractAddress, indexedAt, updatedAt: supersededAt } = row;
      found.push({ chain, id, type, contractAddress, indexedAt, updatedAt, supersededAt });
    }
  }
  return found;
}
