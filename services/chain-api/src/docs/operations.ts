import {
  type AnswerSpec,
  createAnswer,
  type HeaderSpec,
  type Operation,
  type Parameter,
  RETRY_AFTER,
} from '@playline/api-docs';
import { z } from 'zod';
import { createHistoryExamples, createTokenExamples, type DocsSettings } from './examples.ts';
import { createMintingOperations } from './minting-operations.ts';
import { inPath, inQuery, RATE_LIMIT_KEY, withLimit } from './parts.ts';
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
  description: 'Names this state of the token: send it as `If-None-Match` to be told only of another one.',
  schema: { type: 'string', pattern: '^"[\\w-]+"$' },
};

const ERRORS: readonly AnswerSpec[] = [
  createAnswer(400, 'A parameter is not valid; `details.errors` has each that is not.', {
    codes: ['VALIDATION_ERROR'],
  }),
  createAnswer(403, 'There is a rate limit key, and it is not valid.', { codes: ['AUTHENTICATION_ERROR'] }),
  createAnswer(404, 'The chain is not served, or what was asked for is not known.', {
    codes: ['RESOURCE_NOT_FOUND'],
  }),
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
  caution: null,
  body: null,
} as const;

/** Every operation of the chain API, as data. */
export function createOperations(settings: DocsSettings): Operation[] {
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
      'Gives activities in the order of `updated_at`, page by page. Whoever follows `next_cursor` for ever misses none: at the end the page is empty, and the same cursor leads to what comes later.',
      'An activity that changes is served again at its new place. A cursor belongs to the chain and the filters that it was returned for.',
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
      inQuery('page_cursor', 'A cursor as it was returned.', z.string()),
      inQuery('page_size', 'Activities at most.', pageSizeParameter),
    ],
    paging: { parameter: 'page_cursor', next: ['page', 'next_cursor'], previous: ['page', 'previous_cursor'] },
    answers: limited(createAnswer(200, 'A page of activities.', { schema: historyAnswer })),
    examples: createHistoryExamples(settings),
  };
}
