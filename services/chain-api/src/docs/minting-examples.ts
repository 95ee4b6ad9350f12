import {
  CURSOR_PLACEHOLDERS,
  type Example,
  envelope,
  JSON_TYPE,
  placeholderOf,
  success,
  toText,
} from '@playline/api-docs';
import { ADDRESS_EXPECTED } from '@playline/contracts';
import { type DocsSettings, EXAMPLE_CURSOR, getFirstChain, invalid } from './examples.ts';
import { SECRET_KEY, secretHeaderOf } from './parts.ts';

export type MintingExamples = Readonly<
  Record<'collection' | 'stacks' | 'tokens' | 'mint' | 'list' | 'one', readonly Example[]>
>;

export const EXAMPLE_COLLECTION = '0x9fe46736679d2d9a65f0992f2272de9f3c7fa6e0';
const UNLINKED_COLLECTION = '0x000000000000000000000000000000000000dead';
/** A collection that is linked to another project. */
export const EXAMPLE_UNOWNED = '0xcf7ed3acca5a467e9e704c703e8d87f634fb0fc9';
export const EXAMPLE_RESET = '2026-11-22T12:00:18.000Z';
export const EXAMPLE_TIME = '2026-11-22T12:00:00.000000Z';
/** Accepted before the examples run. */
export const EXAMPLE_ASSET = {
  reference_id: 'sword-1001',
  owner_address: '0x70997970c51812dc3a010c7d01b50e0d17dc79c8',
  token_id: '1001',
};

const TOKEN = {
  name: 'Sword of dawn',
  description: null,
  image: 'https://example.com/sword.png',
  external_url: null,
  animation_url: null,
  youtube_url: null,
  attributes: [{ trait_type: 'Power', value: 7, display_type: 'number' }],
};

const COLLECTION = {
  name: 'Swords',
  symbol: 'SWORD',
  description: 'Swords from an example game',
  image: 'https://example.com/swords.png',
  external_link: null,
  contract_uri: null,
  base_uri: null,
};

interface Call {
  readonly method?: 'GET' | 'POST';
  readonly body?: unknown;
  readonly contract?: string;
  readonly key?: string | null;
}

export function createMintingExamples(settings: DocsSettings): MintingExamples {
  const chain = getFirstChain(settings);
  const header = secretHeaderOf(settings);
  const call = (path: string, { body, contract = EXAMPLE_COLLECTION, key = placeholderOf(SECRET_KEY) }: Call = {}) => ({
    method: body === undefined ? ('GET' as const) : ('POST' as const),
    target: `/v1/chains/${chain.name}/collections/${contract}${path}`,
    headers: { ...(key === null ? {} : { [header]: key }), ...(body === undefined ? {} : JSON_TYPE) },
    body: body === undefined ? null : toText(body),
  });
  return {
    ...createRefreshExamples({ settings, call, chain }),
    mint: [...createMintExamples({ settings, call, chain }), ...createOwnerExamples({ settings, call, chain })],
    ...createReadExamples({ settings, call, chain }),
  };
}

interface ExampleParts {
  readonly settings: DocsSettings;
  readonly chain: { readonly id: string; readonly name: string };
  readonly call: (path: string, call?: Call) => Example['request'];
}

const quota = (imx_refreshes_limit: string, imx_remaining_refreshes: string) =>
  success(202, {
    imx_refreshes_limit,
    imx_refresh_limit_reset: EXAMPLE_RESET,
    imx_remaining_refreshes,
    retry_after: '0',
  });

function createRefreshExamples({ settings, call, chain }: ExampleParts) {
  return {
    collection: [
      {
        name: 'collection-metadata',
        title: 'Set collection metadata',
        request: call('/refresh-metadata', { body: { collection_metadata: COLLECTION } }),
        response: success(200, { contract_address: EXAMPLE_COLLECTION, chain, collection_metadata: COLLECTION }),
      },
      {
        name: 'collection-metadata-none',
        title: 'Missing collection_metadata',
        request: call('/refresh-metadata', { body: {} }),
        response: invalid(settings, 'collection_metadata', 'collection_metadata must be an object'),
      },
    ],
    stacks: [
      {
        name: 'stack-metadata',
        title: 'Set metadata shared by several tokens',
        request: call('/metadata/refresh-metadata', {
          body: { metadata: [{ metadata_id: '018f3a5c-7c1e-7d2a-9b1e-3f4a5b6c7d8e', ...TOKEN }] },
        }),
        response: quota('10000', '9999'),
      },
    ],
    tokens: [
      {
        name: 'nft-metadata',
        title: 'Set token metadata',
        request: call('/nfts/refresh-metadata', { body: { nft_metadata: [{ token_id: '1001', ...TOKEN }] } }),
        response: quota('10000', '9999'),
      },
      {
        name: 'nft-metadata-token',
        title: 'Invalid token id',
        request: call('/nfts/refresh-metadata', { body: { nft_metadata: [{ token_id: '0x1', ...TOKEN }] } }),
        response: invalid(
          settings,
          'nft_metadata[0].token_id',
          'nft_metadata[0].token_id must be a string of decimal digits, at least 0 and below 2^256',
        ),
      },
    ],
  };
}

const MINTS = '/nfts/mint-requests';
const NEW_ASSET = { ...EXAMPLE_ASSET, reference_id: 'sword-1002', token_id: '1002' };

function createMintExamples({ settings, call }: ExampleParts): Example[] {
  return [
    {
      name: 'mint',
      title: 'Mint an asset',
      request: call(MINTS, { body: { assets: [{ ...NEW_ASSET, metadata: { name: 'Sword of dawn' } }] } }),
      response: success(202, {
        imx_mint_requests_limit: '2000',
        imx_mint_requests_limit_reset: EXAMPLE_RESET,
        imx_remaining_mint_requests: '1998',
        imx_mint_requests_retry_after: '0',
      }),
    },
    {
      name: 'mint-taken',
      title: 'Reference id already in use',
      request: call(MINTS, { body: { assets: [EXAMPLE_ASSET, NEW_ASSET] } }),
      response: envelope(settings, 'CONFLICT_ERROR', {
        message:
          'Some reference ids are already used by pending or minted assets, or appear more than once in the request.',
        details: { id: 'reference_id', values: [EXAMPLE_ASSET.reference_id] },
      }),
    },
    {
      name: 'mint-owner',
      title: 'Invalid owner address',
      request: call(MINTS, { body: { assets: [{ ...NEW_ASSET, owner_address: '0x12' }] } }),
      response: invalid(settings, 'assets[0].owner_address', `assets[0].owner_address must be ${ADDRESS_EXPECTED}`),
    },
    {
      name: 'mint-quota-exceeded',
      title: 'Mint quota exceeded',
      situation: 'quota-exceeded',
      request: call(MINTS, { body: { assets: [NEW_ASSET] } }),
      response: envelope(settings, 'TOO_MANY_REQUESTS_ERROR', { headers: { 'retry-after': '1' } }),
    },
    {
      name: 'mint-kafka-down',
      title: 'Kafka unavailable, outcome unknown',
      situation: 'kafka-down',
      request: call(MINTS, { body: { assets: [NEW_ASSET] } }),
      response: envelope(settings, 'INTERNAL_SERVER_ERROR'),
    },
  ];
}

function createOwnerExamples({ settings, call }: ExampleParts): Example[] {
  const header = secretHeaderOf(settings);
  const body = { assets: [NEW_ASSET] };
  return [
    {
      name: 'mint-without-key',
      title: 'Missing secret key',
      request: call(MINTS, { body, key: null }),
      response: envelope(settings, 'VALIDATION_ERROR', {
        message: `The header ${header} is missing.`,
        details: { header },
      }),
    },
    {
      name: 'mint-unknown-key',
      title: 'Unknown secret key',
      request: call(MINTS, { body, key: 'unknown' }),
      response: envelope(settings, 'UNAUTHORISED_REQUEST', { details: { header } }),
    },
    {
      name: 'mint-other-project',
      title: 'Collection linked to another project',
      request: call(MINTS, { body, contract: EXAMPLE_UNOWNED }),
      response: envelope(settings, 'AUTHENTICATION_ERROR', {
        message: 'The collection belongs to a different project than the key.',
      }),
    },
    {
      name: 'mint-unlinked',
      title: 'Collection not linked',
      request: call(MINTS, { body, contract: UNLINKED_COLLECTION }),
      response: envelope(settings, 'RESOURCE_NOT_FOUND', { message: 'No project has linked this collection.' }),
    },
  ];
}

function createReadExamples({ settings, call, chain }: ExampleParts) {
  const page = { previous_cursor: EXAMPLE_CURSOR, next_cursor: EXAMPLE_CURSOR };
  const mintRequest = createMintRequest(chain);
  return {
    list: [
      {
        name: 'mint-requests',
        title: 'Pending mint requests',
        request: call(`${MINTS}?status=pending&page_size=1`),
        response: success(200, { result: [mintRequest], page }),
      },
      {
        name: 'mint-requests-next',
        title: 'Next page, empty at the end of the list',
        request: call(`${MINTS}?page_cursor=${CURSOR_PLACEHOLDERS.next}`),
        response: success(200, { result: [], page }),
      },
      {
        name: 'mint-requests-status',
        title: 'Invalid status',
        request: call(`${MINTS}?status=done`),
        response: invalid(settings, 'status', 'status must be one of pending, succeeded, failed'),
      },
    ],
    one: [
      {
        name: 'mint-request',
        title: 'Accepted mint request',
        request: call(`${MINTS}/${EXAMPLE_ASSET.reference_id}`),
        response: success(200, { result: [mintRequest], page }),
      },
      {
        name: 'mint-request-unknown',
        title: 'Unknown reference id',
        request: call(`${MINTS}/nothing`),
        response: envelope(settings, 'RESOURCE_NOT_FOUND', { message: 'The collection has no such mint request.' }),
      },
    ],
  };
}

function createMintRequest(chain: ExampleParts['chain']) {
  return {
    chain,
    collection_address: EXAMPLE_COLLECTION,
    reference_id: EXAMPLE_ASSET.reference_id,
    owner_address: EXAMPLE_ASSET.owner_address,
    status: 'pending',
    token_id: EXAMPLE_ASSET.token_id,
    amount: null,
    activity_id: null,
    transaction_hash: null,
    error: null,
    created_at: EXAMPLE_TIME,
    updated_at: EXAMPLE_TIME,
  };
}
