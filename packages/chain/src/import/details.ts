import type { ActivityType } from '@playline/contracts';
import { z } from 'zod';
import { address, requiredText, uint256 } from './fields.ts';

/** Length limit of names in the interface. Contracts themselves have none. */
const NAME_MAX = 256;

const nftShape = { contract_address: address(), token_id: uint256(), amount: uint256() };
const erc721 = z.object({ contract_type: z.literal('ERC721'), ...nftShape });
const erc1155 = z.object({ contract_type: z.literal('ERC1155'), ...nftShape });
const erc20 = z.object({ contract_type: z.literal('ERC20'), contract_address: address() });
const native = z.object({ contract_type: z.literal('NATIVE'), symbol: requiredText(NAME_MAX) });

const nft = () => z.discriminatedUnion('contract_type', [erc721, erc1155]);
const asset = () => z.discriminatedUnion('contract_type', [erc721, erc1155, erc20]);
const paymentToken = () => z.discriminatedUnion('contract_type', [erc20, native]);

const from = address();
const to = address();
const amount = uint256();
const fee = z.object({ amount, type: z.literal('ROYALTY'), recipient: address() });

const received = z.object({ to, amount, asset: asset() });
const sent = z.object({ from, amount, asset: asset() });
const moved = z.object({ from, to, amount, asset: asset() });
const sale = z.object({
  order_id: requiredText(NAME_MAX),
  to,
  from,
  asset: z
    .array(nft())
    .min(1)
    .refine((assets) => new Set(assets.map(({ contract_address }) => contract_address)).size <= 1, {
      params: { code: 'INVALID_VALUE' },
      error: 'holds assets of several contracts',
    }),
  payment: z.object({
    token: paymentToken(),
    price_excluding_fees: uint256(),
    price_including_fees: uint256(),
    fees: z.array(fee),
  }),
});

/**
 * Members of `details` by type: contract, "Chain reads". All are required; others are dropped. They are stored in this
 * order, with addresses in lower case, so the same activity always gives the same text.
 */
export const DETAILS = {
  mint: received,
  burn: sent,
  transfer: moved,
  deposit: received,
  withdrawal: sent,
  sale,
} as const satisfies Record<ActivityType, z.ZodType>;

export type Details = z.output<(typeof DETAILS)[ActivityType]>;

/** Enough for a sale of about three hundred assets. A page of 200 such sales has 13 MB. */
const DETAILS_BYTES_MAX = 64 * 1024;

/** Details in the form in which they are stored. */
export interface StoredDetails {
  /** JSON text of exactly the members of the type, in order. */
  readonly text: string;
  /** Contract of the activity: that of its asset. All assets of a sale have the same. */
  readonly contractAddress: string;
}

/** @returns null when the text is too long for one activity of a page */
export function toStoredDetails(details: Details): StoredDetails | null {
  const { asset } = details;
  const text = JSON.stringify(details);
  if (Buffer.byteLength(text) > DETAILS_BYTES_MAX) return null;
  return { text, contractAddress: Array.isArray(asset) ? asset[0]!.contract_address : asset.contract_address };
}

/** Details of a record to be stored; null when they are no JSON, do not fit the type, or are too long. */
export function readDetails(type: ActivityType, text: string): StoredDetails | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  const parsed = DETAILS[type].safeParse(value);
  return parsed.success ? toStoredDetails(parsed.data) : null;
}
