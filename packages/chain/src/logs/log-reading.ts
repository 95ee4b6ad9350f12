import type { ActivityType } from '@playline/contracts';

/** What a contract holds: of a thing that is one of its kind, or of many. */
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

/** Why a log that looks like one of ours tells of nothing. */
export type UnreadReason = 'malformed' | 'nobody' | 'several-contracts' | 'several-currencies' | 'too-long';

/** What a log says. */
export interface LogReading {
  /** In their order: the place of each is part of its id. */
  readonly activities: readonly LogActivity[];
  /** It tells of more than are taken: how many it claims. */
  readonly claimed: bigint | null;
  /** It looked like one of ours, and is none. */
  readonly unread: UnreadReason | null;
}

export const NOTHING: LogReading = { activities: [], claimed: null, unread: null };
export const unread = (reason: UnreadReason): LogReading => ({ ...NOTHING, unread: reason });
export const read = (activities: readonly LogActivity[], claimed: bigint | null = null): LogReading => ({
  activities,
  claimed,
  unread: null,
});
