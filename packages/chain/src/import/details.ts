import type { ActivityType } from '@playline/contracts';
import { z } from 'zod';
import { address, requiredText, uint256 } from './fields.ts';

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

const receivedDetails = z.object({ to, amount, asset: asset() });
const sentDetails = z.object({ from, amount, asset: asset() });
const movedDetails = z.object({ from, to, amount, asset: asset() });
const sale = z.object({
  order_id: requiredText(NAME_MAX),
  to,
  from,
  asset: z
    .array(nft())
    .min(1)
    .refine((assets) => new Set(assets.map(({ contract_address }) => contract_address)).size <= 1, {
      params: { code: 'INVALID_VALUE' },
      error: 'contains assets from several contracts',
    }),
  payment: z.object({
    token: paymentToken(),
    price_excluding_fees: uint256(),
    price_including_fees: uint256(),
    fees: z.array(fee),
  }),
});

/** Members of `details` by type, stored in this order and in lower case, so that equal details have equal JSON. */
export const DETAILS = {
  mint: receivedDetails,
  burn: sentDetails,
  transfer: movedDetails,
  deposit: receivedDetails,
  withdrawal: sentDetails,
  sale,
} as const satisfies Record<ActivityType, z.ZodType>;

export type Details = z.output<(typeof DETAILS)[ActivityType]>;

/** Large enough for a sale of about three hundred assets. */
const DETAILS_BYTES_MAX = 64 * 1024;

export interface StoredDetails {
  /** The details as JSON. */
  readonly text: string;
  readonly contractAddress: string;
}

/** @returns null if the JSON is too long */
export function toStoredDetails(details: Details): StoredDetails | null {
  const { asset } = details;
  const text = JSON.stringify(details);
  if (Buffer.byteLength(text) > DETAILS_BYTES_MAX) return null;
  return { text, contractAddress: Array.isArray(asset) ? asset[0]!.contract_address : asset.contract_address };
}

/** @returns null if the details do not match the type or are too long */
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
