import type { ActivityType } from '@playline/contracts';

export type LogAsset =
  | {
      readonly contract_type: 'ERC721' | 'ERC1155';
      readonly contract_address: string;
      readonly token_id: string;
      readonly amount: string;
    }
  | { readonly contract_type: 'ERC20'; readonly contract_address: string };

export interface LogActivity {
  readonly type: ActivityType;
  readonly details: Readonly<Record<string, unknown>>;
  readonly contractAddress: string;
}

export type UnreadReason =
  | 'malformed'
  | 'unindexed'
  | 'no-party'
  | 'several-contracts'
  | 'several-currencies'
  | 'too-long';

/** A log over its block's budget: none of its activities are indexed. */
export interface Summary {
  readonly contract: string;
  readonly tokens: bigint;
  /** Ids in between belong to the log only if it reports a range. */
  readonly firstId: bigint;
  readonly lastId: bigint;
}

export interface LogReading {
  /** In order: the index is part of the activity id. */
  readonly activities: readonly LogActivity[];
  /** Set for a log over the budget. */
  readonly summary: Summary | null;
  /** Set for a known event that could not be used. */
  readonly unread: UnreadReason | null;
}

export const NOTHING: LogReading = { activities: [], summary: null, unread: null };
export const unread = (reason: UnreadReason): LogReading => ({ ...NOTHING, unread: reason });
export const summarise = (summary: Summary): LogReading => ({ ...NOTHING, summary });
export const read = (activities: readonly LogActivity[]): LogReading => ({ ...NOTHING, activities });
