import type { ActivityType } from '@playline/contracts';
import { z } from 'zod';
import { address, requiredText, uint256 } from './fields.ts';

/** Longest names of the interface; the contracts themselves set no bound. */
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
 * Members of `details` by type: contract, "Chain reads". All are required, others are left out. They
 * stand in this order in what is stored, with addresses in lower case, so the same activity is always the same text.
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

/** A sale of some three hundred assets; a page of 200 such is 13 MB. */
const DETAILS_BYTES_MAX = 64 * 1024;

/** Details as they are stored. */
export interface StoredDetails {
  /** JSON: the members of the type in their order, and no others. */
  readonly text: string;
  /** The contract that the activity belongs to: that of its asset, of a sale that of all its assets. */
  readonly contractAddress: string;
}

/** @returns null when the text is longer than what one activity of a page may be */
export function toStoredDetails(details: Details): StoredDetails | null {
  const { asset } = details;
  const text = JSON.stringify(details);
  if (Buffer.byteLength(text) > DETAILS_BYTES_MAX) return null;
  return { text, contractAddress: Array.isArray(asset) ? asset[0]!.contract_address : asset.contract_address };
}

/** What is stored of a record's details; null when they are no JSON, none of their type, or too long. */
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
