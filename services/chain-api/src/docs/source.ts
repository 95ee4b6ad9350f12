import {
  type AnswerSpec,
  createAnswer,
  type DocsSource,
  type HeaderSpec,
  html,
  type Operation,
  type Parameter,
  RETRY_AFTER,
} from '@playline/api-docs';
import { z } from 'zod';
import { createHistoryExamples, createNowhereExamples, createTokenExamples, type DocsSettings } from './examples.ts';
import { createMintingOperations } from './minting-operations.ts';
import { inPath, inQuery, RATE_LIMIT_KEY, SECRET_KEY, secretHeaderOf, withLimit } from './parts.ts';
import {
  addressParameter,
  historyAnswer,
  pageSizeParameter,
  timeParameter,
  tokenAnswer,
  typeParameter,
} from './schemas.ts';

const ETAG: HeaderSpec = {
  name: 'ETag',
  description: 'Version of the token. Send it as `If-None-Match` to receive only a changed one.',
  schema: { type: 'string', pattern: '^"[\\w-]+"$' },
};

const ERRORS: readonly AnswerSpec[] = [
  createAnswer(400, 'A parameter is not valid; `details.errors` has each that is not.', {
    codes: ['VALIDATION_ERROR'],
  }),
  createAnswer(403, 'There is a rate limit key, and it is not valid.', { codes: ['AUTHENTICATION_ERROR'] }),
  createAnswer(404, 'The chain is not served, or the token is unknown.', { codes: ['RESOURCE_NOT_FOUND'] }),
  createAnswer(429, 'More calls than the limit; send the request again later.', {
    codes: ['TOO_MANY_REQUESTS_ERROR'],
    headers: [RETRY_AFTER],
  }),
  createAnswer(500, 'The service failed; send the same request again.', { codes: ['INTERNAL_SERVER_ERROR'] }),
];

const limited = (...answers: readonly AnswerSpec[]): AnswerSpec[] => withLimit([...answers, ...ERRORS]);

const NOTHING_ELSE = {
  method: 'GET',
  keys: [{ kind: RATE_LIMIT_KEY, required: false }],
  confirmation: null,
  body: null,
} as const;

function createOperations(settings: DocsSettings): Operation[] {
  const chain = inPath(
    'chain_name',
    'The name of a chain that is served.',
    z.enum(settings.chains.map(({ name }) => name)),
  );
  return [createToken(settings, chain), createHistory(settings, chain), ...createMintingOperations(settings, chain)];
}

function createToken(settings: DocsSettings, chain: Parameter): Operation {
  return {
    ...NOTHING_ELSE,
    id: 'getToken',
    path: '/v1/chains/{chain_name}/tokens/{contract_address}',
    summary: 'Get single ERC20 token',
    description: ['Gives what is known of a fungible token. One that has not moved yet is read from its contract.'],
    parameters: [
      chain,
      inPath('contract_address', 'Of the token. Mixed case must match the EIP-55 checksum.', addressParameter),
    ],
    paging: null,
    answers: limited(
      createAnswer(200, 'The token.', { schema: tokenAnswer, headers: [ETAG] }),
      createAnswer(304, 'The token is as `If-None-Match` names it.', { headers: [ETAG] }),
    ),
    examples: createTokenExamples(settings),
  };
}

function createHistory(settings: DocsSettings, chain: Parameter): Operation {
  const bound = (name: string, which: string) =>
    inQuery(name, `${which} bound of \`indexed_at\`, inclusive. Give it under one of its two names.`, timeParameter);
  return {
    ...NOTHING_ELSE,
    id: 'listActivityHistory',
    path: '/v1/chains/{chain_name}/activity-history',
    summary: 'List history of activities',
    description: [
      'Returns activities in the order of `updated_at`, page by page. A reader that follows `next_cursor` misses none: at the end the page is empty, and the same cursor returns later activities.',
      'An activity that changes is served again at its new position. A cursor is valid for the chain and the filters of its page.',
    ],
    parameters: [
      chain,
      bound('from_updated_at', 'Lower'),
      bound('to_updated_at', 'Upper'),
      bound('from_indexed_at', 'Lower'),
      bound('to_indexed_at', 'Upper'),
      inQuery(
        'contract_address',
        'Contract of the assets. Mixed case must match the EIP-55 checksum.',
        addressParameter,
      ),
      inQuery('activity_type', 'What happened.', typeParameter),
      inQuery('page_cursor', 'A cursor of an earlier page.', z.string()),
      inQuery('page_size', 'Activities at most.', pageSizeParameter),
    ],
    paging: { parameter: 'page_cursor', next: ['page', 'next_cursor'], previous: ['page', 'previous_cursor'] },
    answers: limited(createAnswer(200, 'A page of activities.', { schema: historyAnswer })),
    examples: createHistoryExamples(settings),
  };
}

export function createChainDocs(settings: DocsSettings): DocsSource {
  return {
    publicUrl: settings.publicUrl,
    title: 'Playline chain interface',
    version: '1.0.0',
    summary: 'Tokens and activities of chains, and mints of collections',
    about:
      'Gives tokens of a chain, and the history of its activities for replicas that follow it; mints assets of collections, and takes their metadata. JSON over HTTP.',
    notes: [
      `Reads of a chain need no key. Whatever is about a collection needs the secret key of its environment in the header \`${secretHeaderOf(settings)}\`.`,
      'A rate limit key in `x-api-key` counts calls by the plan of its owner instead of the client address; one that is not valid is refused.',
      'Send a request again after 429 (wait `Retry-After` seconds), 500 or a broken connection. Assets to be minted go again with the same reference ids: none is minted twice. After 409 send the others.',
      'Times are UTC with microseconds. Numbers of chains are strings of digits.',
    ],
    tag: { name: 'chains', description: 'What is known of chains' },
    keys: [
      {
        kind: SECRET_KEY,
        header: secretHeaderOf(settings),
        label: 'Secret key',
        isPublic: false,
        note: 'For servers alone: never part of a game or a page.',
      },
      {
        kind: RATE_LIMIT_KEY,
        header: 'x-api-key',
        label: 'Rate limit key',
        isPublic: false,
        note: 'For servers of partners alone. No operation needs it.',
      },
    ],
    firstPage: {
      title: 'Playline chains',
      lead: 'Read tokens and activities of a chain over HTTP, and follow its history without missing anything.',
      heading: 'Read your first token',
      anchor: 'first-token',
      before: html`<p>You need a chain that is served and the address of a token on it; no key.</p>`,
      after: html`<p>To copy all activities, request the history without a cursor, then repeatedly with the last <code>next_cursor</code>. Store the cursor together with the copied activities.</p>`,
      command: 'The same token as a command',
    },
    operations: createOperations(settings),
    errors: ERROR_TEXTS,
    partCodes: null,
    otherExamples: createNowhereExamples(settings),
    articles: [],
  };
}

const ERROR_TEXTS: DocsSource['errors'] = {
  VALIDATION_ERROR: {
    cause:
      'A parameter or a member of a body has a value that it cannot have, is missing or given twice; a cursor belongs to another chain or to other filters; the key header is missing; or no key signs for the environment yet. Headers that are too long have this code and status 431.',
    fix: 'Read `details.errors`: it has each parameter and member that is wrong, and what it must be. The same request fails again.',
  },
  UNAUTHORISED_REQUEST: {
    cause: 'The secret key is malformed, unknown, replaced by a newer one, or a publishable key.',
    fix: 'Use the current secret key of the environment that the collection is linked to.',
  },
  AUTHENTICATION_ERROR: {
    cause:
      'The collection belongs to another project or environment than the secret key; or the rate limit key in `x-api-key` is unknown, replaced, revoked or expired.',
    fix: 'Use a key of the environment that the collection is linked to. Leave `x-api-key` out, or use a current key: no operation needs one.',
  },
  RESOURCE_NOT_FOUND: {
    cause:
      'The chain is not served, the token is unknown, the collection is not linked or has no such mint request, or path and method are not part of the interface.',
    fix: 'Compare the name of the chain, the address and the path; all paths start with `/v1/chains`.',
  },
  CONFLICT_ERROR: {
    cause:
      'Reference ids of the request are pending or minted in the collection, or occur twice in the request. Nothing was accepted, and no quota was used.',
    fix: 'Take the assets with the ids in `details.values` out and send the others: those that conflict are taken care of already. An id that failed may be used again.',
  },
  TOO_MANY_REQUESTS_ERROR: {
    cause:
      'The client address, or the rate limit key, has made as many calls as it may within one window; or the project has used up what it may mint or refresh.',
    fix: 'Send the same request again after the number of seconds in the `Retry-After` header.',
  },
  INTERNAL_SERVER_ERROR: {
    cause: 'Something inside the service failed or did not answer in time. The request itself was not refused.',
    fix: 'Send the same request again, with the same reference ids; cursors stay good. If it lasts, give the operator the `trace_id`.',
  },
};
