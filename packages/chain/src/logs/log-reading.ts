import type { ActivityType } from '@playline/contracts';

/** The asset of a log: an NFT, or a fungible token. */
export type LogAsset =
  | {
      readonly contract_type: 'ERC721' | 'ERC1155';
      readonly contract_address: string;
      readonly token_id: string;
      readonly amount: string;
    }
  | { readonly contract_type: 'ERC20'; readonly contract_address: string };

/** One activity from a log, with the `details` of its type. */
export interface LogActivity {
  readonly type: ActivityType;
  readonly details: Readonly<Record<string, unknown>>;
  /** Contract of the asset. All assets of a sale have the same. */
  readonly contractAddress: string;
}

/** Why a log with the signature of a known event was not used. */
export type UnreadReason = 'malformed' | 'nobody' | 'several-contracts' | 'several-currencies' | 'too-long';

/** The result of decoding a log. */
export interface LogReading {
  /** The order matters: the index of each is part of its id. */
  readonly activities: readonly LogActivity[];
  /** The number of activities that the log claims, when it is more than are taken; otherwise null. */
  readonly claimed: bigint | null;
  /** Set when the log has the signature of a known event but could not be used. */
  readonly unread: UnreadReason | null;
}

export const NOTHING: LogReading = { activities: [], claimed: null, unread: null };
export const unread = (reason: UnreadReason): LogReading => ({ ...NOTHING, unread: reason });
export const read = (activities: readonly LogActivity[], claimed: bigint | null = null): LogReading => ({
  activities,
  claimed,
  unread: null,
});
