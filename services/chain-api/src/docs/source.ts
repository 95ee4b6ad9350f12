import {
  createResponse,
  type DocsSource,
  type HeaderSpec,
  html,
  Markup,
  type Operation,
  type Parameter,
  RETRY_AFTER,
  type ResponseSpec,
} from '@playline/api-docs';
import { createSite } from '@playline/guides';
import { z } from 'zod';
import { createHistoryExamples, createTokenExamples, createUnknownExamples, type DocsSettings } from './examples.ts';
import { createMintingOperations } from './minting-operations.ts';
import { pathParam, queryParam, RATE_LIMIT_KEY, SECRET_KEY, secretHeaderOf, withLimit } from './parts.ts';
import {
  addressParameter,
  historyResponse,
  pageSizeParameter,
  timeParameter,
  tokenResponse,
  typeParameter,
} from './schemas.ts';

const ETAG: HeaderSpec = {
  name: 'ETag',
  description: 'Version of the token. Send it in `If-None-Match` to get 304 if the token has not changed.',
  schema: { type: 'string', pattern: '^"[\\w-]+"$' },
};

const ERRORS: readonly ResponseSpec[] = [
  createResponse(400, 'A parameter is invalid; `details.errors` lists every invalid parameter.', {
    codes: ['VALIDATION_ERROR'],
  }),
  createResponse(403, 'The rate limit key is not valid.', { codes: ['AUTHENTICATION_ERROR'] }),
  createResponse(404, 'The chain or the token is unknown.', { codes: ['RESOURCE_NOT_FOUND'] }),
  createResponse(429, 'Rate limit exceeded. Retry later.', {
    codes: ['TOO_MANY_REQUESTS_ERROR'],
    headers: [RETRY_AFTER],
  }),
  createResponse(500, 'The service failed. Retry the same request.', { codes: ['INTERNAL_SERVER_ERROR'] }),
];

const limited = (...responses: readonly ResponseSpec[]): ResponseSpec[] => withLimit([...responses, ...ERRORS]);

const PUBLIC_READ = {
  method: 'GET',
  keys: [{ kind: RATE_LIMIT_KEY, required: false }],
  confirmation: null,
  body: null,
} as const;

function createOperations(settings: DocsSettings): Operation[] {
  const chain = pathParam('chain_name', 'Name of the chain.', z.enum(settings.chains.map(({ name }) => name)));
  return [createToken(settings, chain), createHistory(settings, chain), ...createMintingOperations(settings, chain)];
}

function createToken(settings: DocsSettings, chain: Parameter): Operation {
  return {
    ...PUBLIC_READ,
    id: 'getToken',
    path: '/v1/chains/{chain_name}/tokens/{contract_address}',
    summary: 'Get single ERC20 token',
    description: ['Returns an ERC-20 token. A token without transfers is read from its contract.'],
    parameters: [
      chain,
      pathParam('contract_address', 'Token address. Mixed case must match the EIP-55 checksum.', addressParameter),
    ],
    paging: null,
    responses: limited(
      createResponse(200, 'The token.', { schema: tokenResponse, headers: [ETAG] }),
      createResponse(304, 'The token has not changed since the version in `If-None-Match`.', { headers: [ETAG] }),
    ),
    examples: createTokenExamples(settings),
  };
}

function createHistory(settings: DocsSettings, chain: Parameter): Operation {
  const bound = (name: string, description: string) => queryParam(name, description, timeParameter);
  return {
    ...PUBLIC_READ,
    id: 'listActivityHistory',
    path: '/v1/chains/{chain_name}/activity-history',
    summary: 'List activity history',
    description: [
      'Returns activities ordered by `updated_at`. A reader that follows `next_cursor` receives every activity. At the end of the history the page is empty; use the same cursor again to get newer activities.',
      'An updated activity appears again at its new position. A cursor is valid only for the same chain and filters.',
    ],
    parameters: [
      chain,
      bound('from_updated_at', 'Older name of `from_indexed_at`. Do not send both.'),
      bound('to_updated_at', 'Older name of `to_indexed_at`. Do not send both.'),
      bound('from_indexed_at', 'Return only activities indexed at or after this time.'),
      bound('to_indexed_at', 'Return only activities indexed at or before this time.'),
      queryParam(
        'contract_address',
        'Contract address of the assets. Mixed case must match the EIP-55 checksum.',
        addressParameter,
      ),
      queryParam('activity_type', 'Return only activities of this type.', typeParameter),
      queryParam('page_cursor', 'Cursor from an earlier page.', z.string()),
      queryParam('page_size', 'Maximum number of activities per page.', pageSizeParameter),
    ],
    paging: { parameter: 'page_cursor', next: ['page', 'next_cursor'], previous: ['page', 'previous_cursor'] },
    responses: limited(createResponse(200, 'A page of activities.', { schema: historyResponse })),
    examples: createHistoryExamples(settings),
  };
}

export function createChainDocs(settings: DocsSettings): DocsSource {
  const { publicUrl, gatewayUrl = null, headerPrefix } = settings;
  const site = createSite({
    own: 'chain',
    urls: { events: gatewayUrl, chain: publicUrl },
    headerPrefix,
  });
  const guides = site.guides.map((guide) => Object.assign({}, guide, { content: new Markup(guide.content) }));
  return {
    area: 'Chain',
    elsewhere: site.elsewhere,
    publicUrl,
    title: 'Playline chain API',
    version: '1.0.0',
    summary: 'Chain activities and tokens, minting, and collection metadata',
    about:
      'Read tokens and replicate the activity history of a chain, mint assets, and set collection metadata. JSON over HTTP.',
    notes: [
      `Reading tokens and activities requires no key. Operations on a collection require the secret key of its environment in the \`${secretHeaderOf(settings)}\` header.`,
      "With a rate limit key in `x-api-key`, the key's limit applies instead of the limit per client address. Requests with an invalid key are rejected.",
      'Retry a request after 429 (wait `Retry-After` seconds), 500 or a connection error. Keep the same reference ids when you retry a mint request: no asset is minted twice. After 409, remove the listed assets and send the rest.',
      'Timestamps are in UTC with microseconds. Block numbers, amounts and token ids are strings of decimal digits.',
    ],
    tag: { name: 'chains', description: 'Tokens, activities and mints' },
    keys: [
      {
        kind: SECRET_KEY,
        header: secretHeaderOf(settings),
        label: 'Secret key',
        isPublic: false,
        note: 'Use it only on your servers. Never ship it in a game or a web page.',
      },
      {
        kind: RATE_LIMIT_KEY,
        header: 'x-api-key',
        label: 'Rate limit key',
        isPublic: false,
        note: 'Optional. Use it only on your servers.',
      },
    ],
    firstPage: {
      title: 'Playline chain API',
      lead: 'Read tokens, replicate the complete activity history of a chain, and mint assets.',
      heading: 'Read your first token',
      anchor: 'first-token',
      before: html`<p>${settings.token ? 'The form contains a token that this service serves.' : 'This service serves no token yet. After the first transfer of a token is indexed, the form contains its address.'} Choose another chain or address if you like. No key is required.</p>`,
      after: html`<p>To replicate all activities, request the history without a cursor, then keep requesting it with the latest <code>next_cursor</code>. Store the cursor together with the activities.</p>`,
    },
    operations: createOperations(settings),
    errors: ERROR_TEXTS,
    rejections: {},
    otherExamples: createUnknownExamples(settings),
    articles: guides,
  };
}

const ERROR_TEXTS: DocsSource['errors'] = {
  VALIDATION_ERROR: {
    cause:
      'A parameter or body field is missing, invalid or duplicated; a cursor belongs to a different chain or different filters; the key header is missing; or the environment has no signing key yet. Requests whose headers are too long return this code with status 431.',
    fix: 'Check `details.errors`, which lists every invalid parameter and field with the expected value. Fix the request before you send it again.',
  },
  UNAUTHORISED_REQUEST: {
    cause: 'The secret key is malformed, unknown or replaced by a newer key, or you sent a publishable key instead.',
    fix: 'Use the current secret key of the environment that the collection is linked to.',
  },
  AUTHENTICATION_ERROR: {
    cause:
      'The collection belongs to a different project or environment than the secret key, or the rate limit key in `x-api-key` is unknown, replaced, revoked or expired.',
    fix: 'Use the secret key of the environment that the collection is linked to. Use a valid rate limit key, or omit `x-api-key`: no operation requires it.',
  },
  RESOURCE_NOT_FOUND: {
    cause:
      'The chain, token or mint request does not exist, the collection is not linked, or the API has no operation with this path and method.',
    fix: 'Check the chain name, the address and the path. All paths start with `/v1/chains`.',
  },
  CONFLICT_ERROR: {
    cause:
      'Some reference ids in the request are already pending or minted in the collection, or occur more than once in the request. No asset was accepted, and no quota was used.',
    fix: 'Remove the assets whose ids are in `details.values` and send the rest. The conflicting assets have already been accepted. You can reuse a reference id after its mint request has failed.',
  },
  TOO_MANY_REQUESTS_ERROR: {
    cause:
      'The client address or the rate limit key has reached its call limit for the current window, or the project has used up its mint or refresh quota.',
    fix: 'Wait the number of seconds in the `Retry-After` header, then retry the same request.',
  },
  INTERNAL_SERVER_ERROR: {
    cause: 'The service failed or did not respond in time. The request itself was not rejected.',
    fix: 'Retry the same request with the same reference ids. Cursors remain valid. If the error persists, send the `trace_id` to the operator.',
  },
};
