import type { ActivityType, Direction } from '@playline/contracts';
import type { Gap, Position } from './cursor.ts';
import type { ActivityConstants, ActivityRow, TokenRow } from './rows.ts';

/** Tables that the writer fills. */
export const CHAIN_TABLES = ['activities', 'activity_ids', 'activity_feeds', 'tokens'] as const;
export type ChainTable = (typeof CHAIN_TABLES)[number];

/** A feed entry: this version is superseded by a later one. */
export interface Supersession extends Position, ActivityConstants {
  /** `updatedAt` of the next version of the activity. */
  readonly supersededAt: number;
}

/**
 * Rows of one block for one table. Each activity is written to `activities`, `activity_ids` and `activity_feeds`, the
 * last with the result of `findSupersessions`, before the watermark is raised. `storedOffsets` says which rows of
 * `activities` are stored; in the other tables readers always see copies as one row.
 */
export type ChainInsert = {
  /** Names exactly this set of rows. A repeated token is not stored again, so other rows under it would be lost. */
  readonly token: string;
  readonly signal: AbortSignal;
} & (
  | { readonly table: 'activities' | 'activity_ids'; readonly rows: readonly ActivityRow[] }
  | { readonly table: 'activity_feeds'; readonly rows: readonly (ActivityRow | Supersession)[] }
  | { readonly table: 'tokens'; readonly rows: readonly TokenRow[] }
);

/** The writer's store of activities and tokens. */
export interface ActivityStore {
  /**
   * Stores the rows once per token. After a crash of the store between recording the token and storing the rows, it
   * resolves without storing them. So ask `storedOffsets` about a block that was tried before.
   * @throws StoreFault
   */
  insert(block: ChainInsert): Promise<void>;
  /** Offsets of those of these rows that are stored in `activities`. @throws StoreFault */
  storedOffsets(rows: readonly ActivityRow[]): Promise<ReadonlySet<number>>;
  /**
   * Constant members of those of these activities that are stored, by lower-case id, from their first version: an id
   * that two chains have used belongs to the first one.
   * @throws StoreFault
   */
  constantsOf(ids: readonly string[]): Promise<ReadonlyMap<string, ActivityConstants>>;
  /**
   * The rows of `activities` of a partition whose `updatedAt` is greater than `after`, and at most `end`; copies too.
   * @throws StoreFault
   */
  rowsBetween(partition: number, after: number, end: number): Promise<readonly ActivityRow[]>;
  /**
   * `updatedAt` of the last version before `us`, in epoch microseconds, by lower-case id, of those of these activities
   * of a chain that have one.
   * @throws StoreFault
   */
  lastBefore(us: number, chain: string, ids: readonly string[]): Promise<ReadonlyMap<string, number>>;
  /** True when the store answers and accepts the credentials. */
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

/** Filters of a feed; null for any value. The filtered members never change for an activity. */
export interface ActivityFilters {
  /** Bounds of `indexedAt`, both inclusive, epoch microseconds. */
  readonly fromIndexedAt: number | null;
  readonly toIndexedAt: number | null;
  /** In lower case. */
  readonly contractAddress: string | null;
  readonly type: ActivityType | null;
}

export interface PageQuery {
  /** Name of the chain. */
  readonly chain: string;
  readonly filters: ActivityFilters;
  readonly gap: Gap;
  readonly direction: Direction;
  /** Most rows, at least 1. */
  readonly limit: number;
  /** Only rows before this are served, epoch microseconds: `toHorizon` of the watermark of the chain's partition. */
  readonly horizon: number;
}

/** An activity in the form for readers, without the members that the store does not know. */
export interface ShownActivity extends Position {
  /** Partition of its record. */
  readonly partition: number;
  /** JSON of the members of `toActivityJson` after `chain`, without the outer braces. */
  readonly members: Buffer;
}

/** Rows in ascending order, and the gaps on both sides of them. */
export interface ActivityPage {
  readonly rows: readonly ShownActivity[];
  /** Where to continue towards the past. For an empty page, the gap of the query. */
  readonly previous: Gap;
  /**
   * Where to continue towards the horizon. Nothing new will ever be served between the gap of the query and this one.
   * For an empty page, the gap of the query or one after superseded versions.
   */
  readonly next: Gap;
}

/** The readers' store of activities and tokens. */
export interface ChainStore {
  /**
   * The activities next to a gap, each in its last version below the horizon, as text that was made when they were
   * written. A page may be short although more follows. A reader that keeps following `next` misses nothing.
   * @throws StoreFault
   */
  readPage(question: PageQuery): Promise<ActivityPage>;
  /** Null when no token of the chain has this contract, in lower case. @throws StoreFault */
  readToken(chain: string, contractAddress: string): Promise<TokenRow | null>;
  /**
   * Those of these activities that are stored, each in its last version, regardless of the horizon. If two chains have
   * used an id, both.
   * @param ids in lower case, at most a few thousand
   * @throws StoreFault
   */
  readActivities(ids: readonly string[]): Promise<readonly ActivityRow[]>;
  /** True when the store answers and accepts the credentials. */
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

/** Filters that every activity passes. */
export const NO_FILTERS: ActivityFilters = {
  fromIndexedAt: null,
  toIndexedAt: null,
  contractAddress: null,
  type: null,
};

/** Whether an activity passes these filters. */
export function passesFilters(row: ActivityConstants, filters: ActivityFilters): boolean {
  const { fromIndexedAt, toIndexedAt, contractAddress, type } = filters;
  return (
    (fromIndexedAt === null || row.indexedAt >= fromIndexedAt) &&
    (toIndexedAt === null || row.indexedAt <= toIndexedAt) &&
    (contractAddress === null || row.contractAddress === contractAddress) &&
    (type === null || row.type === type)
  );
}

/**
 * Finds the versions that a block supersedes: for each of its rows that is not the first version of its activity, the
 * version before. That one may be in the block itself or in an earlier block. The block's own rows may be stored
 * already, by an earlier attempt.
 * @param rows of one partition, in the order of `updatedAt`; all blocks of the partition before them are written
 * @param lastBefore see `ActivityStore`
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
      // A copy of a row supersedes nothing.
      if (updatedAt === undefined || updatedAt >= row.updatedAt) continue;
      const { id, type, contractAddress, indexedAt, updatedAt: supersededAt } = row;
      found.push({ chain, id, type, contractAddress, indexedAt, updatedAt, supersededAt });
    }
  }
  return found;
}
