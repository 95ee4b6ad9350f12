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
export type UnreadReason =
  | 'malformed'
  | 'unindexed'
  | 'nobody'
  | 'several-contracts'
  | 'several-currencies'
  | 'too-long';

/** A log that reports more tokens than the budget of its block has left: none of its activities is taken. */
export interface Summary {
  readonly contract: string;
  /** Number of tokens that the log reports. */
  readonly tokens: bigint;
  /** Lowest and highest token id. Ids between them need not be part of the log, unless it reports a range. */
  readonly firstId: bigint;
  readonly lastId: bigint;
}

/** The result of decoding a log. */
export interface LogReading {
  /** The order matters: the index of each is part of its id. */
  readonly activities: readonly LogActivity[];
  /** Set instead of activities when the log is over the budget. */
  readonly summary: Summary | null;
  /** Set when the log has the signature of a known event but could not be used. */
  readonly unread: UnreadReason | null;
}

export const NOTHING: LogReading = { activities: [], summary: null, unread: null };
export const unread = (reason: UnreadReason): LogReading => ({ ...NOTHING, unread: reason });
export const summarise = (summary: Summary): LogReading => ({ ...NOTHING, summary });
export const read = (activities: readonly LogActivity[]): LogReading => ({ ...NOTHING, activities });
