import type { ActivityType, Direction } from '@playline/contracts';
import type { Gap, Position } from './cursor.ts';
import type { ActivityConstants, ActivityRow, TokenRow } from './rows.ts';

/** Ports to the activity and token stores. */
export const CHAIN_TABLES = ['activities', 'activity_ids', 'activity_feeds', 'tokens'] as const;
export type ChainTable = (typeof CHAIN_TABLES)[number];

export interface Supersession extends Position, ActivityConstants {
  /** `updatedAt` of the next version. */
  readonly supersededAt: number;
}

/** Rows of a block for one table. All tables are written before the watermark is raised. */
export type ChainInsert = {
  /** Identifies this set of rows: rows with a repeated token are not stored again. */
  readonly token: string;
  readonly signal: AbortSignal;
} & (
  | { readonly table: 'activities' | 'activity_ids'; readonly rows: readonly ActivityRow[] }
  | { readonly table: 'activity_feeds'; readonly rows: readonly (ActivityRow | Supersession)[] }
  | { readonly table: 'tokens'; readonly rows: readonly TokenRow[] }
);

/** The writer's store. Methods throw a StoreFault. */
export interface ActivityStore {
  /** After a store crash, it may resolve without storing: check `storedOffsets` before retrying a block. */
  insert(block: ChainInsert): Promise<void>;
  /** Offsets of the rows that are stored in `activities`. */
  storedOffsets(rows: readonly ActivityRow[]): Promise<ReadonlySet<number>>;
  /** Constant members by lower-case id, from the first version: an id used by two chains belongs to the first. */
  constantsOf(ids: readonly string[]): Promise<ReadonlyMap<string, ActivityConstants>>;
  /** Rows of `activities` with `updatedAt` above `after`, up to `end`, with copies. */
  rowsBetween(partition: number, after: number, end: number): Promise<readonly ActivityRow[]>;
  /** `updatedAt` of the last version before `us`, by lower-case id. */
  lastBefore(us: number, chain: string, ids: readonly string[]): Promise<ReadonlyMap<string, number>>;
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

/** null matches any value. Filtered members never change. */
export interface ActivityFilters {
  /** Inclusive, epoch microseconds. */
  readonly fromIndexedAt: number | null;
  readonly toIndexedAt: number | null;
  /** Lower case. */
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
  /** Only earlier rows are served, epoch microseconds. */
  readonly horizon: number;
}

export interface ShownActivity extends Position {
  readonly partition: number;
  /** JSON of the members after `chain`, without braces. */
  readonly members: Buffer;
}

/** In ascending order. */
export interface ActivityPage {
  readonly rows: readonly ShownActivity[];
  /** For an empty page, the gap of the query. */
  readonly previous: Gap;
  /** Nothing new is ever served before it. */
  readonly next: Gap;
}

/** The readers' store. Methods throw a StoreFault. */
export interface ChainStore {
  /** Activities next to a gap, each in its last version below the horizon. A short page is not the end. */
  readPage(query: PageQuery): Promise<ActivityPage>;
  /** null when the chain has no such token. The address is in lower case. */
  readToken(chain: string, contractAddress: string): Promise<TokenRow | null>;
  /** Last stored versions, whatever the horizon; one per chain. @param ids lower case, a few thousand at most */
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
 * Versions superseded by a block: the one before each row, in the block or earlier. @param rows of one partition, by
 * `updatedAt`; earlier blocks must be written
 */
export async function findSupersessions(
  rows: readonly ActivityRow[],
  lastBefore: ActivityStore['lastBefore'],
): Promise<Supersession[]> {
  const [first] = rows;
  if (first === undefined) return [];
  const found: Supersession[] = [];
  for (const [chain, own] of Map.groupBy(rows, (row) => row.chain)) {
    const last = new Map(await lastBefore(first.updatedAt, chain, [...new Set(own.map(({ id }) => id))]));
    for (const row of own) {
      const updatedAt = last.get(row.id);
      last.set(row.id, row.updatedAt);
      // A copy of the row.
      if (updatedAt === undefined || updatedAt >= row.updatedAt) continue;
      const { id, type, contractAddress, indexedAt, updatedAt: supersededAt } = row;
      found.push({ chain, id, type, contractAddress, indexedAt, updatedAt, supersededAt });
    }
  }
  return found;
}
