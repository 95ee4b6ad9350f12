import { ACTIVITY_TYPES, VERIFICATION_STATUSES } from '@playline/contracts';
import { z } from 'zod';
import { PAGE_SIZE, PAGE_SIZE_MAX } from '../parameters.ts';

/** Not `z.iso.datetime()`, whose pattern also accepts fewer fractional digits. */
export const time = () =>
  z.string().meta({ format: 'date-time', description: 'UTC with six fractional digits and `Z`.' });
export const address = () =>
  z
    .string()
    .regex(/^0x[0-9a-f]{40}$/)
    .meta({ description: 'Lower case.' });
export const amount = () => z.string().regex(/^(0|[1-9]\d*)$/);

export const addressParameter = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/)
  .meta({ description: 'Lower case, upper case, or mixed case with a valid EIP-55 checksum.' });
export const timeParameter = z.string().meta({ format: 'date-time' });
export const typeParameter = z.enum(ACTIVITY_TYPES);
export const pageSizeParameter = z.int().min(1).max(PAGE_SIZE_MAX).default(PAGE_SIZE);

export const chain = z
  .object({ id: z.string().meta({ description: '`namespace:reference`' }), name: z.string() })
  .meta({ id: 'Chain' });

const token = z
  .object({
    chain,
    contract_address: address(),
    root_contract_address: address().nullable(),
    symbol: z.string().nullable(),
    decimals: z.int().min(0).max(255).nullable(),
    image_url: z.string().nullable(),
    name: z.string().nullable(),
    verification_status: z.enum(VERIFICATION_STATUSES),
    updated_at: time(),
    is_canonical: z.boolean(),
    root_chain_id: z.string().nullable(),
    bridge_used: z.string().nullable(),
  })
  .meta({ id: 'Token' });

const nft = z
  .object({
    contract_type: z.enum(['ERC721', 'ERC1155']),
    contract_address: address(),
    token_id: amount(),
    amount: amount(),
  })
  .meta({ id: 'NftAsset' });
const erc20 = z.object({ contract_type: z.literal('ERC20'), contract_address: address() }).meta({ id: 'TokenAsset' });
const native = z.object({ contract_type: z.literal('NATIVE'), symbol: z.string() }).meta({ id: 'NativeToken' });
const asset = z.union([nft, erc20]);

const receivedDetails = z.object({ to: address(), amount: amount(), asset }).meta({ id: 'ReceivedDetails' });
const sentDetails = z.object({ from: address(), amount: amount(), asset }).meta({ id: 'SentDetails' });
const transfer = z.object({ from: address(), to: address(), amount: amount(), asset }).meta({ id: 'TransferDetails' });
const sale = z
  .object({
    order_id: z.string(),
    to: address().meta({ description: 'The buyer.' }),
    from: address().meta({ description: 'The seller.' }),
    asset: z.array(nft).min(1),
    payment: z.object({
      token: z.union([erc20, native]),
      price_excluding_fees: amount(),
      price_including_fees: amount(),
      fees: z.array(z.object({ amount: amount(), type: z.literal('ROYALTY'), recipient: address() })),
    }),
  })
  .meta({ id: 'SaleDetails' });

const activity = z
  .object({
    id: z.uuid(),
    chain,
    type: typeParameter,
    details: z.union([sale, transfer, receivedDetails, sentDetails]).meta({
      description:
        'ReceivedDetails for `mint` and `deposit`, SentDetails for `burn` and `withdrawal`, TransferDetails for `transfer`, and SaleDetails for `sale`.',
    }),
    updated_at: time(),
    indexed_at: time(),
    blockchain_metadata: z
      .object({
        transaction_hash: z.string().regex(/^0x[0-9a-f]{64}$/),
        block_number: amount(),
        transaction_index: amount(),
        log_index: amount().nullable(),
      })
      .nullable(),
  })
  .meta({ id: 'Activity' });

export const tokenResponse = z.object({ result: token }).meta({ id: 'TokenResponse' });

export const page = z
  .object({ previous_cursor: z.string(), next_cursor: z.string() })
  .meta({ id: 'Page', description: 'Both cursors are always present, even on an empty page.' });

export const historyResponse = z.object({ result: z.array(activity), page }).meta({ id: 'ActivityHistory' });
