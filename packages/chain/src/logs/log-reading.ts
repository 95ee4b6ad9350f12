import type { ActivityType } from '@playline/contracts';

/** What a log is about: a unique thing, or an amount of many equal ones. */
export type LogAsset =
  | {
      readonly contract_type: 'ERC721' | 'ERC1155';
      readonly contract_address: string;
      readonly token_id: string;
      readonly amount: string;
    }
  | { readonly contract_type: 'ERC20'; readonly contract_address: string };

/** One activity that a log tells of, as `details` of its type. */
export interface LogActivity {
  readonly type: ActivityType;
  readonly details: Readonly<Record<string, unknown>>;
  /** Of the asset; of a sale that of all its assets. */
  readonly contractAddress: string;
}

/** Why a log that looks like a known event is not used. */
export type UnreadReason = 'malformed' | 'nobody' | 'several-contracts' | 'several-currencies' | 'too-long';

/** What is read from a log. */
export interface LogReading {
  /** In their order: the place of each is part of its id. */
  readonly activities: readonly LogActivity[];
  /** Set when the log describes more activities than are read: how many it claims to describe. */
  readonly claimed: bigint | null;
  /** Set when it looked like a known event and is none. */
  readonly unread: UnreadReason | null;
}

export const NOTHING: LogReading = { activities: [], claimed: null, unread: null };
export const unread = (reason: UnreadReason): LogReading => ({ ...NOTHING, unread: reason });
export const read = (activities: readonly LogActivity[], claimed: bigint | null = null): LogReading => ({
  activities,
  claimed,
  unread: null,
});
