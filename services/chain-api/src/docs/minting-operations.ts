import {
  createResponse,
  type HeaderSpec,
  type Operation,
  type Parameter,
  RETRY_AFTER,
  type ResponseSpec,
} from '@playline/api-docs';
import { MINT_STATUSES } from '@playline/contracts';
import { ASSETS_MAX, DISPLAY_TYPES, REFERENCE_CODE_POINTS_MAX, STACKS_MAX, TOKENS_MAX } from '@playline/mints';
import { z } from 'zod';
import type { DocsSettings } from './examples.ts';
import { createMintingExamples, type MintingExamples } from './minting-examples.ts';
import { pathParam, queryParam, RATE_LIMIT_KEY, SECRET_KEY, withLimit } from './parts.ts';
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

const tokenFields = {
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
    reference_id: referenceId().meta({ description: 'Your id for the asset, unique within the collection.' }),
    owner_address: addressParameter,
    token_id: digits().nullable().optional(),
    amount: digits().nullable().optional().meta({ description: 'At least 1.' }),
    metadata: z
      .object(tokenFields)
      .partial()
      .nullable()
      .optional()
      .meta({ description: 'At most 16 KiB of JSON. All fields are optional.' }),
  })
  .meta({ id: 'MintAsset' });

const mintBody = z.object({ assets: z.array(asset).min(1).max(ASSETS_MAX) }).meta({ id: 'CreateMintRequests' });

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
  .meta({ id: 'CollectionMetadata', description: 'All fields are required. Any field can be null.' });

const collectionBody = z.object({ collection_metadata: collectionMetadata }).meta({ id: 'RefreshCollection' });
const stacksBody = z
  .object({
    metadata: z
      .array(z.object({ metadata_id: z.uuid(), ...tokenFields }))
      .min(1)
      .max(STACKS_MAX),
  })
  .meta({ id: 'RefreshStacks' });
const tokensBody = z
  .object({
    nft_metadata: z
      .array(z.object({ token_id: digits(), ...tokenFields }))
      .min(1)
      .max(TOKENS_MAX),
  })
  .meta({ id: 'RefreshTokens' });

const collectionResponse = z
  .object({ contract_address: address(), chain, collection_metadata: collectionMetadata })
  .meta({ id: 'RefreshCollectionResponse' });

const count = () => z.string().regex(/^\d+$/);
const reset = () => z.string().meta({ format: 'date-time', description: 'Time at which the quota is full again.' });
const retryAfter = () => count().meta({ description: 'Seconds to wait before the next request; 0 if none.' });

const mintResponse = z
  .object({
    imx_mint_requests_limit: count(),
    imx_mint_requests_limit_reset: reset(),
    imx_remaining_mint_requests: count(),
    imx_mint_requests_retry_after: retryAfter(),
  })
  .meta({ id: 'CreateMintRequestsResponse' });

const refreshResponse = z
  .object({
    imx_refreshes_limit: count(),
    imx_refresh_limit_reset: reset(),
    imx_remaining_refreshes: count(),
    retry_after: retryAfter(),
  })
  .meta({ id: 'RefreshMetadataResponse' });

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

const mintRequestsResponse = z.object({ result: z.array(mintRequest), page }).meta({ id: 'MintRequests' });

const headerOf = (name: string, description: string, pattern: string): HeaderSpec => ({
  name,
  description,
  schema: { type: 'string', pattern },
});
const CONFLICT_TEXT =
  'Some reference ids are already in use; `details.values` lists them. No asset was accepted, and no quota was used.';
const DIGITS = '^\\d+$';
const ISO_TIME = '^\\d{4}-.*Z$';
const RESET_TEXT = 'Time at which the quota is full again, in ISO 8601.';
const RETRY_TEXT = 'Seconds to wait before the next request; 0 if none.';

const MINT_HEADERS: readonly HeaderSpec[] = [
  headerOf('imx-mint-requests-limit', 'Maximum number of token ids that the project can request in a burst.', DIGITS),
  headerOf('imx-mint-requests-limit-reset', RESET_TEXT, ISO_TIME),
  headerOf('imx-remaining-mint-requests', 'Remaining token ids.', DIGITS),
  headerOf('imx-mint-requests-retry-after', RETRY_TEXT, DIGITS),
];
const REFRESH_HEADERS: readonly HeaderSpec[] = [
  headerOf('imx-refreshes-limit', 'Maximum number of refreshes that the project can request in a burst.', DIGITS),
  headerOf('imx-refresh-limit-reset', RESET_TEXT, ISO_TIME),
  headerOf('imx-remaining-refreshes', 'Remaining refreshes.', DIGITS),
  headerOf('Retry-After', RETRY_TEXT, DIGITS),
];

const createError = (
  status: number,
  code: ResponseSpec['codes'][number],
  description: string,
  headers: readonly HeaderSpec[] = [],
) => createResponse(status, description, { codes: [code], headers });

/** @param conflicts responses that only some operations return */
function createErrors(...conflicts: readonly ResponseSpec[]): readonly ResponseSpec[] {
  const invalid =
    'The request is invalid; `details.errors` lists every problem. If the body is not UTF-8 encoded JSON, `details` has `offset`, `line`, `column` and `found`.';
  const limited =
    'The request exceeds the rate limit or the project quota (see the response headers). A mint request can also exceed the limit on pending assets (`details`: `{"limit":"pending_assets"}`) or on failed assets (`{"limit":"failed_assets"}`).';
  return [
    createError(400, 'VALIDATION_ERROR', invalid),
    createError(401, 'UNAUTHORISED_REQUEST', 'The secret key is not valid.'),
    createError(403, 'AUTHENTICATION_ERROR', 'The collection belongs to another project or environment.'),
    createError(
      404,
      'RESOURCE_NOT_FOUND',
      'The chain is unknown, the collection is not linked, or the mint request does not exist.',
    ),
    ...conflicts,
    createError(429, 'TOO_MANY_REQUESTS_ERROR', limited, [RETRY_AFTER]),
    createError(500, 'INTERNAL_SERVER_ERROR', 'The service failed, or the outcome is unknown. Retry the same request.'),
  ];
}

type OperationSpec = Pick<Operation, 'id' | 'method' | 'path' | 'summary' | 'description' | 'responses' | 'examples'> &
  Partial<Pick<Operation, 'body' | 'paging' | 'parameters'>>;

export function createMintingOperations(settings: DocsSettings, chain: Parameter): Operation[] {
  const examples = createMintingExamples(settings);
  const contract = pathParam(
    'contract_address',
    'Collection address. Mixed case must match the EIP-55 checksum.',
    addressParameter,
  );
  const toOperation = (spec: OperationSpec): Operation => ({
    keys: [
      { kind: SECRET_KEY, required: true },
      { kind: RATE_LIMIT_KEY, required: false },
    ],
    confirmation: null,
    body: null,
    paging: null,
    ...spec,
    path: `/v1/chains/{chain_name}/collections/{contract_address}${spec.path}`,
    parameters: [chain, contract, ...(spec.parameters ?? [])],
    responses: withLimit(spec.responses),
  });
  return [...createRefreshes(examples), ...createMints(examples)].map(toOperation);
}

const bodyOf = (description: string, schema: z.ZodType) => ({ description, schema, refreshedFields: null });

function createRefreshes(examples: MintingExamples): OperationSpec[] {
  const description = 'The metadata was accepted.';
  const accepted = createResponse(202, description, { schema: refreshResponse, headers: REFRESH_HEADERS });
  const latest =
    'The last request wins. All fields are required, and any field can be null. Unknown fields are ignored.';
  return [
    {
      id: 'refreshCollectionMetadata',
      method: 'POST',
      path: '/refresh-metadata',
      summary: 'Refresh collection metadata',
      description: ['Sets the metadata of a collection.', latest],
      body: bodyOf('At most 228 KiB.', collectionBody),
      responses: [
        createResponse(200, description, { schema: collectionResponse, headers: REFRESH_HEADERS }),
        ...createErrors(),
      ],
      examples: examples.collection,
    },
    {
      id: 'refreshStackMetadata',
      method: 'POST',
      path: '/metadata/refresh-metadata',
      summary: 'Refresh stacked metadata',
      description: ['Sets the metadata of stacks. All tokens in a stack share the same metadata.', latest],
      body: bodyOf('1 to 10 stacks, at most 228 KiB.', stacksBody),
      responses: [accepted, ...createErrors()],
      examples: examples.stacks,
    },
    {
      id: 'refreshNftMetadata',
      method: 'POST',
      path: '/nfts/refresh-metadata',
      summary: 'Refresh NFT metadata',
      description: ['Sets the metadata of individual tokens in a collection.', latest],
      body: bodyOf('1 to 250 tokens, at most 228 KiB.', tokensBody),
      responses: [accepted, ...createErrors()],
      examples: examples.tokens,
    },
  ];
}

function createMints(examples: MintingExamples): OperationSpec[] {
  const path = '/nfts/mint-requests';
  return [
    {
      id: 'createMintRequests',
      method: 'POST',
      path,
      summary: 'Mint NFTs',
      description: [
        'Requests minting of one or more assets. Either all assets in the request are accepted or none are. The signing key of the environment mints accepted assets asynchronously.',
        'You can reuse a reference id only after its mint request has failed. After any error, retry the same request: a 409 response lists the assets that were already accepted.',
      ],
      body: bodyOf('1 to 100 assets, at most 2 MiB. A null field is treated as absent.', mintBody),
      responses: [
        createResponse(202, 'All assets were accepted.', { schema: mintResponse, headers: MINT_HEADERS }),
        ...createErrors(createError(409, 'CONFLICT_ERROR', CONFLICT_TEXT)),
      ],
      examples: examples.mint,
    },
    {
      id: 'listMintRequests',
      method: 'GET',
      path,
      summary: 'List mint requests',
      description: [
        'Returns the mint requests for a collection, ordered by acceptance time. New requests appear after a few seconds. A failed request that was resubmitted is listed under its latest acceptance time.',
        'An empty page marks the end of the list. A cursor is valid only for the same collection and status.',
      ],
      parameters: [
        queryParam('status', 'Return only requests with this status.', statusParameter),
        queryParam('page_cursor', 'Cursor from an earlier page.', z.string()),
        queryParam('page_size', 'Maximum number of requests per page.', pageSizeParameter),
      ],
      paging: { parameter: 'page_cursor', next: ['page', 'next_cursor'], previous: ['page', 'previous_cursor'] },
      responses: [createResponse(200, 'A page of mint requests.', { schema: mintRequestsResponse }), ...createErrors()],
      examples: examples.list,
    },
    {
      id: 'getMintRequest',
      method: 'GET',
      path: `${path}/{reference_id}`,
      summary: 'Get mint request',
      description: ['Returns a list with one mint request. A request is available as soon as it has been accepted.'],
      parameters: [pathParam('reference_id', 'Reference id of the mint request, percent-encoded.', referenceParameter)],
      responses: [createResponse(200, 'The mint request.', { schema: mintRequestsResponse }), ...createErrors()],
      examples: examples.one,
    },
  ];
}
