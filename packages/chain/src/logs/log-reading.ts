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

/** Summarises a log that exceeds its block's budget. None of its activities are indexed. */
export interface Summary {
  readonly contract: string;
  readonly tokens: bigint;
  /** The ids in between belong to the log only if the log reports a range. */
  readonly firstId: bigint;
  readonly lastId: bigint;
}

export interface LogReading {
  /** In log order, because the index is part of the activity id. */
  readonly activities: readonly LogActivity[];
  /** Set if the log exceeds the budget. */
  readonly summary: Summary | null;
  /** Set if the log is a known event that cannot be converted to an activity. */
  readonly unread: UnreadReason | null;
}

export const EMPTY_READING: LogReading = { activities: [], summary: null, unread: null };
export const unread = (reason: UnreadReason): LogReading => ({ ...EMPTY_READING, unread: reason });
export const summarise = (summary: Summary): LogReading => ({ ...EMPTY_READING, summary });
export const read = (activities: readonly LogActivity[]): LogReading => ({ ...EMPTY_READING, activities });
