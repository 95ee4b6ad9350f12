import type { ActivityType } from '@playline/contracts';
import type { Direction, Gap, Position } from './position.ts';
import type { ActivityConstants, ActivityRow, TokenRow } from './rows.ts';

/** Tables that the writer fills. */
export const CHAIN_TABLES = ['activities', 'activity_ids', 'activity_feeds', 'tokens'] as const;
export type ChainTable = (typeof CHAIN_TABLES)[number];

/** A version that a later one has replaced, as the feeds are told of it. */
export interface Supersession extends Position, ActivityConstants {
  /** `updatedAt` of the next version of the activity. */
  readonly supersededAt: number;
}

/**
 * Rows of one block for one table. Every activity goes to `activities`, to `activity_ids` and to `activity_feeds`, these
 * with what `findSupersessions` makes of the block, before the watermark says that it stands. `activities` tells by
 * offsets what stands; of the others a row and its copies are one at any moment.
 */
export type ChainInsert = {
  /** Names exactly this set of rows: the same token again is stored once. Other rows under it would be lost. */
  readonly token: string;
  readonly signal: AbortSignal;
} & (
  | { readonly table: 'activities' | 'activity_ids'; readonly rows: readonly ActivityRow[] }
  | { readonly table: 'activity_feeds'; readonly rows: readonly (ActivityRow | Supersession)[] }
  | { readonly table: 'tokens'; readonly rows: readonly TokenRow[] }
);

/** Where the writer puts activities and tokens. */
export interface ActivityStore {
  /**
   * Stores the rows once, however often it is called with the same token. Resolves also when the store remembers the
   * token without its rows, after a crash between the two: of a block that was tried before, ask `storedOffsets`.
   * @throws StoreFault
   */
  insert(block: ChainInsert): Promise<void>;
  /** Which of these rows stand in `activities`, by their offsets. @throws StoreFault */
  storedOffsets(rows: readonly ActivityRow[]): Promise<ReadonlySet<number>>;
  /**
   * What never changes of those of these activities that stand, by their ids in lower case, as their first version says
   * it: an id that two chains have used belongs to the one that used it first.
   * @throws StoreFault
   */
  standing(ids: readonly string[]): Promise<ReadonlyMap<string, ActivityConstants>>;
  /**
   * The rows of `activities` of a partition whose `updatedAt` is greater than `after`, and at most `end`; copies too.
   * @throws StoreFault
   */
  standingBetween(partition: number, after: number, end: number): Promise<readonly ActivityRow[]>;
  /**
   * `updatedAt` of the last version before a time, epoch microseconds, of those of these activities of a chain that have
   * one, by their ids in lower case.
   * @throws StoreFault
   */
  lastBefore(us: number, chain: string, ids: readonly string[]): Promise<ReadonlyMap<string, number>>;
  /** True when the store answers, and lets us in. */
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

/** What a reader of the feed wants to see; null: anything. None of it ever changes for an activity. */
export interface ActivityFilters {
  /** Bounds of `indexedAt`, both inclusive, epoch microseconds. */
  readonly fromIndexedAt: number | null;
  readonly toIndexedAt: number | null;
  /** In lower case. */
  readonly contractAddress: string | null;
  readonly type: ActivityType | null;
}

export interface PageQuestion {
  /** Name of the chain. */
  readonly chain: string;
  readonly filters: ActivityFilters;
  readonly gap: Gap;
  readonly direction: Direction;
  /** Rows at most, at least 1. */
  readonly limit: number;
  /** Only rows before this are served, epoch microseconds: `toHorizon` of the watermark of the chain's partition. */
  readonly horizon: number;
}

/** An activity as it goes to readers, without the members that the store does not know. */
export interface ShownActivity extends Position {
  /** Where its record stood in the log. */
  readonly partition: number;
  /** Bytes of JSON of the members of `toActivityJson` behind `chain`, without the braces around them. */
  readonly members: Buffer;
}

/** Rows in ascending order, and the gaps on both sides of them. */
export interface ActivityPage {
  readonly rows: readonly ShownActivity[];
  /** To read on towards the past. The gap that was asked for when the page has no rows. */
  readonly previous: Gap;
  /**
   * To read on towards the horizon: nothing between this gap and the gap that was asked for will ever be served that was
   * not. Of a page without rows the gap that was asked for, or one behind versions that have later ones.
   */
  readonly next: Gap;
}

/** Where readers find activities and tokens. */
export interface ChainStore {
  /**
   * The activities next to a gap, each in its last version below the horizon, as the text that they were given when they
   * were written. A page may be short though more follows: whoever follows `next` for ever misses nothing.
   * @throws StoreFault
   */
  readPage(question: PageQuestion): Promise<ActivityPage>;
  /** Null when no token of the chain has this contract, in lower case. @throws StoreFault */
  readToken(chain: string, contractAddress: string): Promise<TokenRow | null>;
  /**
   * Of these activities those that stand, each in its last version, whatever the horizon. Of an id that two chains have
   * used, both.
   * @param ids in lower case, at most some thousand
   * @throws StoreFault
   */
  readActivities(ids: readonly string[]): Promise<readonly ActivityRow[]>;
  /** True when the store answers, and lets us in. */
  ready(): Promise<boolean>;
  close(): Promise<void>;
}
