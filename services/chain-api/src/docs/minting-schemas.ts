import { MINT_STATUSES } from '@playline/contracts';
import { ASSETS_MAX, DISPLAY_TYPES, REFERENCE_CODE_POINTS_MAX, STACKS_MAX, TOKENS_MAX } from '@playline/mints';
import { z } from 'zod';
import { address, addressParameter, amount, chain, page, time } from './schemas.ts';

const digits = () => z.string().regex(/^(0|[1-9]\d{0,77})$/);
const referenceId = () => z.string().min(1).max(REFERENCE_CODE_POINTS_MAX);

const attribute = z
  .object({
    trait_type: z.string(),
    value: z.union([z.string(), z.number(), z.boolean()]),
    display_type: z.enum(DISPLAY_TYPES).nullable().optional(),
  })
  .meta({ id: 'Attribute' });

const texts = {
  name: z.string().nullable(),
  description: z.string().nullable(),
  image: z.string().nullable(),
  external_url: z.string().nullable(),
  animation_url: z.string().nullable(),
  youtube_url: z.string().nullable(),
  attributes: z.array(attribute).nullable(),
};

const asset = z
  .object({
    reference_id: referenceId().meta({ description: 'What you call the asset: unique in the collection.' }),
    owner_address: addressParameter,
    token_id: digits().nullable().optional(),
    amount: digits().nullable().optional().meta({ description: 'From 1.' }),
    metadata: z
      .object(texts)
      .partial()
      .nullable()
      .optional()
      .meta({ description: 'At most 16 KiB of JSON; no member is required.' }),
  })
  .meta({ id: 'MintAsset' });

export const mintBody = z.object({ assets: z.array(asset).min(1).max(ASSETS_MAX) }).meta({ id: 'MintOrder' });

const collectionMetadata = z
  .object({
    name: z.string().nullable(),
    symbol: z.string().nullable(),
    description: z.string().nullable(),
    image: z.string().nullable(),
    external_link: z.string().nullable(),
    contract_uri: z.string().nullable(),
    base_uri: z.string().nullable(),
  })
  .meta({ id: 'CollectionMetadata', description: 'Every member is required, and may be null.' });

export const collectionBody = z.object({ collection_metadata: collectionMetadata }).meta({ id: 'RefreshCollection' });
export const stacksBody = z
  .object({
    metadata: z
      .array(z.object({ metadata_id: z.uuid(), ...texts }))
      .min(1)
      .max(STACKS_MAX),
  })
  .meta({ id: 'RefreshStacks' });
export const tokensBody = z
  .object({
    nft_metadata: z
      .array(z.object({ token_id: digits(), ...texts }))
      .min(1)
      .max(TOKENS_MAX),
  })
  .meta({ id: 'RefreshTokens' });

export const collectionAnswer = z
  .object({ contract_address: address(), chain, collection_metadata: collectionMetadata })
  .meta({ id: 'CollectionAnswer' });

const count = () => z.string().regex(/^\d+$/);
const reset = () => z.string().meta({ format: 'date-time', description: 'When all of it is there again.' });

export const mintAnswer = z
  .object({
    imx_mint_requests_limit: count(),
    imx_mint_requests_limit_reset: reset(),
    imx_remaining_mint_requests: count(),
    imx_mint_requests_retry_after: count().meta({ description: 'Seconds; 0 when more may be sent.' }),
  })
  .meta({ id: 'MintAnswer' });

export const refreshAnswer = z
  .object({
    imx_refreshes_limit: count(),
    imx_refresh_limit_reset: reset(),
    imx_remaining_refreshes: count(),
    retry_after: count().meta({ description: 'Seconds; 0 when more may be sent.' }),
  })
  .meta({ id: 'RefreshAnswer' });

export const statusParameter = z.enum(MINT_STATUSES);
export const referenceParameter = referenceId();

const mintRequest = z
  .object({
    chain,
    collection_address: address(),
    reference_id: referenceId(),
    owner_address: address(),
    status: statusParameter,
    token_id: amount().nullable(),
    amount: amount().nullable(),
    activity_id: z.uuid().nullable(),
    transaction_hash: z
      .string()
      .regex(/^0x[0-9a-f]{64}$/)
      .nullable(),
    error: z.object({ message: z.string() }).nullable(),
    created_at: time(),
    updated_at: time(),
  })
  .meta({ id: 'MintRequest' });

export const mintRequestsAnswer = z.object({ result: z.array(mintRequest), page }).meta({ id: 'MintRequests' });
