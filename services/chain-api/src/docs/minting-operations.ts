import {
  type AnswerSpec,
  createAnswer,
  type HeaderSpec,
  type Operation,
  type Parameter,
  RETRY_AFTER,
} from '@playline/api-docs';
import { MINT_STATUSES } from '@playline/contracts';
import { ASSETS_MAX, DISPLAY_TYPES, REFERENCE_CODE_POINTS_MAX, STACKS_MAX, TOKENS_MAX } from '@playline/mints';
import { z } from 'zod';
import type { DocsSettings } from './examples.ts';
import { createMintingExamples, type MintingExamples } from './minting-examples.ts';
import { inPath, inQuery, RATE_LIMIT_KEY, SECRET_KEY, withLimit } from './parts.ts';
import { address, addressParameter, amount, chain, page, pageSizeParameter, time } from './schemas.ts';

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

const mintBody = z.object({ assets: z.array(asset).min(1).max(ASSETS_MAX) }).meta({ id: 'MintOrder' });

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

const collectionBody = z.object({ collection_metadata: collectionMetadata }).meta({ id: 'RefreshCollection' });
const stacksBody = z
  .object({
    metadata: z
      .array(z.object({ metadata_id: z.uuid(), ...texts }))
      .min(1)
      .max(STACKS_MAX),
  })
  .meta({ id: 'RefreshStacks' });
const tokensBody = z
  .object({
    nft_metadata: z
      .array(z.object({ token_id: digits(), ...texts }))
      .min(1)
      .max(TOKENS_MAX),
  })
  .meta({ id: 'RefreshTokens' });

const collectionAnswer = z
  .object({ contract_address: address(), chain, collection_metadata: collectionMetadata })
  .meta({ id: 'CollectionAnswer' });

const count = () => z.string().regex(/^\d+$/);
const reset = () => z.string().meta({ format: 'date-time', description: 'Time when the quota is full again.' });

const mintAnswer = z
  .object({
    imx_mint_requests_limit: count(),
    imx_mint_requests_limit_reset: reset(),
    imx_remaining_mint_requests: count(),
    imx_mint_requests_retry_after: count().meta({ description: 'Seconds; 0 when more may be sent.' }),
  })
  .meta({ id: 'MintAnswer' });

const refreshAnswer = z
  .object({
    imx_refreshes_limit: count(),
    imx_refresh_limit_reset: reset(),
    imx_remaining_refreshes: count(),
    retry_after: count().meta({ description: 'Seconds; 0 when more may be sent.' }),
  })
  .meta({ id: 'RefreshAnswer' });

const statusParameter = z.enum(MINT_STATUSES);
const referenceParameter = referenceId();

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

const mintRequestsAnswer = z.object({ result: z.array(mintRequest), page }).meta({ id: 'MintRequests' });

const headerOf = (name: string, description: string, pattern: string): HeaderSpec => ({
  name,
  description,
  schema: { type: 'string', pattern },
});
const CONFLICT = 'Reference ids are taken; `details.values` has each. Nothing was accepted, nothing counted.';
const COUNT = '^\\d+$';
const TIME = '^\\d{4}-.*Z$';

const MINT_HEADERS: readonly HeaderSpec[] = [
  headerOf('imx-mint-requests-limit', 'Burst of token ids that the project may request.', COUNT),
  headerOf('imx-mint-requests-limit-reset', 'When the quota is full again: ISO 8601.', TIME),
  headerOf('imx-remaining-mint-requests', 'Token ids that are left.', COUNT),
  headerOf('imx-mint-requests-retry-after', 'Seconds to wait; 0 when more may be sent.', COUNT),
];
const REFRESH_HEADERS: readonly HeaderSpec[] = [
  headerOf('imx-refreshes-limit', 'Burst of collections, tokens and stacks that the project may refresh.', COUNT),
  headerOf('imx-refresh-limit-reset', 'When the quota is full again: ISO 8601.', TIME),
  headerOf('imx-remaining-refreshes', 'Those that are left.', COUNT),
  headerOf('Retry-After', 'Seconds to wait; 0 when more may be sent.', COUNT),
];

const faultOf = (
  status: number,
  code: AnswerSpec['codes'][number],
  description: string,
  headers: readonly HeaderSpec[] = [],
) => createAnswer(status, description, { codes: [code], headers });

/** @param conflicts answers that only some operations have */
function createFaults(...conflicts: readonly AnswerSpec[]): readonly AnswerSpec[] {
  const invalid =
    'A part is missing or invalid; `details.errors` has each. If the body is not JSON in UTF-8, `details` has `offset`, `line`, `column` and `found`.';
  const refused =
    'More calls than the limit, or more than the quota of the project (see the header fields of the operation). For mints also too many pending assets (`details`: `{"limit":"pending_assets"}`) or too many failed ones (`{"limit":"failed_assets"}`).';
  return [
    faultOf(400, 'VALIDATION_ERROR', invalid),
    faultOf(401, 'UNAUTHORISED_REQUEST', 'The secret key is not valid.'),
    faultOf(403, 'AUTHENTICATION_ERROR', 'The collection belongs to another project or environment than the key.'),
    faultOf(
      404,
      'RESOURCE_NOT_FOUND',
      'The chain is not served, the collection is not linked, or it has no such mint request.',
    ),
    ...conflicts,
    faultOf(429, 'TOO_MANY_REQUESTS_ERROR', refused, [RETRY_AFTER]),
    faultOf(
      500,
      'INTERNAL_SERVER_ERROR',
      'The service failed, or the outcome is unknown; send the same request again.',
    ),
  ];
}

type Rest = Pick<Operation, 'id' | 'method' | 'path' | 'summary' | 'description' | 'answers' | 'examples'> &
  Partial<Pick<Operation, 'body' | 'paging' | 'parameters'>>;

export function createMintingOperations(settings: DocsSettings, chain: Parameter): Operation[] {
  const examples = createMintingExamples(settings);
  const contract = inPath(
    'contract_address',
    'Of the collection. Mixed case must match the EIP-55 checksum.',
    addressParameter,
  );
  const complete = (rest: Rest): Operation => ({
    keys: [
      { kind: SECRET_KEY, required: true },
      { kind: RATE_LIMIT_KEY, required: false },
    ],
    confirmation: null,
    body: null,
    paging: null,
    ...rest,
    path: `/v1/chains/{chain_name}/collections/{contract_address}${rest.path}`,
    parameters: [chain, contract, ...(rest.parameters ?? [])],
    answers: withLimit(rest.answers),
  });
  return [...createRefreshes(examples), ...createMints(examples)].map(complete);
}

const bodyOf = (description: string, schema: z.ZodType) => ({ description, schema, fresh: null });

function createRefreshes(examples: MintingExamples): Rest[] {
  const accepted = createAnswer(202, 'The metadata is recorded.', { schema: refreshAnswer, headers: REFRESH_HEADERS });
  const latest = 'The last request counts. Every member is required, and may be null; others are ignored.';
  return [
    {
      id: 'refreshCollectionMetadata',
      method: 'POST',
      path: '/refresh-metadata',
      summary: 'Refresh metadata of a collection',
      description: ['Sets the metadata of a collection.', latest],
      body: bodyOf('At most 228 KiB.', collectionBody),
      answers: [
        createAnswer(200, 'The metadata is recorded.', { schema: collectionAnswer, headers: REFRESH_HEADERS }),
        ...createFaults(),
      ],
      examples: examples.collection,
    },
    {
      id: 'refreshStackMetadata',
      method: 'POST',
      path: '/metadata/refresh-metadata',
      summary: 'Refresh stacked metadata',
      description: ['Sets metadata of stacks, which several tokens share.', latest],
      body: bodyOf('One to ten stacks, at most 228 KiB.', stacksBody),
      answers: [accepted, ...createFaults()],
      examples: examples.stacks,
    },
    {
      id: 'refreshNftMetadata',
      method: 'POST',
      path: '/nfts/refresh-metadata',
      summary: 'Refresh NFT metadata',
      description: ['Sets the metadata of tokens of a collection.', latest],
      body: bodyOf('One to 250 tokens, at most 228 KiB.', tokensBody),
      answers: [accepted, ...createFaults()],
      examples: examples.tokens,
    },
  ];
}

function createMints(examples: MintingExamples): Rest[] {
  const path = '/nfts/mint-requests';
  return [
    {
      id: 'createMintRequests',
      method: 'POST',
      path,
      summary: 'Mint NFTs',
      description: [
        'Accepts assets to be minted: all of the request, or none. They are minted afterwards, by the key that signs for the environment of the collection.',
        'A reference id is accepted once until it has failed. After any error send the same request again: 409 names what was accepted before.',
      ],
      body: bodyOf('One to a hundred assets, at most 2 MiB. null counts as absent.', mintBody),
      answers: [
        createAnswer(202, 'Every asset is accepted.', { schema: mintAnswer, headers: MINT_HEADERS }),
        ...createFaults(faultOf(409, 'CONFLICT_ERROR', CONFLICT)),
      ],
      examples: examples.mint,
    },
    {
      id: 'listMintRequests',
      method: 'GET',
      path,
      summary: 'List mint requests',
      description: [
        'Returns the mint requests of a collection in order of acceptance, page by page, with a delay of some seconds. A request that failed and was accepted again is listed at its latest acceptance.',
        'The end is a page without requests. A cursor belongs to the collection and the status that it was returned for.',
      ],
      parameters: [
        inQuery('status', 'Only requests with this status.', statusParameter),
        inQuery('page_cursor', 'A cursor of an earlier page.', z.string()),
        inQuery('page_size', 'Requests at most.', pageSizeParameter),
      ],
      paging: { parameter: 'page_cursor', next: ['page', 'next_cursor'], previous: ['page', 'previous_cursor'] },
      answers: [createAnswer(200, 'A page of mint requests.', { schema: mintRequestsAnswer }), ...createFaults()],
      examples: examples.list,
    },
    {
      id: 'getMintRequest',
      method: 'GET',
      path: `${path}/{reference_id}`,
      summary: 'Get mint request',
      description: ['Returns one mint request as a list of one, immediately after it was accepted.'],
      parameters: [inPath('reference_id', 'The reference id of the request, percent-encoded.', referenceParameter)],
      answers: [createAnswer(200, 'The mint request.', { schema: mintRequestsAnswer }), ...createFaults()],
      examples: examples.one,
    },
  ];
}
