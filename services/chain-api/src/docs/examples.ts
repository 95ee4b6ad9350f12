import { CURSOR_PLACEHOLDERS, type Example, envelope, success } from '@playline/api-docs';
import { type TokenRow, toTokenJson } from '@playline/chain';
import { ADDRESS_EXPECTED } from '@playline/contracts';
import type { ChainSettings } from '../config.ts';

export interface DocsSettings {
  /** Without a trailing slash. */
  readonly publicUrl: string;
  /** The setting `HTTP_HEADER_PREFIX`. */
  readonly headerPrefix: string;
  /** Public URL of the gateway; absent if there is none. */
  readonly gatewayUrl?: string | undefined;
  /** A token that this instance serves; absent if it serves none yet. */
  readonly token?: TokenRow | null;
  /** Not empty. Examples use the chain of the token, or else the first chain. */
  readonly chains: readonly ChainSettings[];
}

export const example = (name: string, title: string, request: Example['request'], response: Example['response']) =>
  ({ name, title, request, response }) satisfies Example;

/** Service states that the tests set up before they send an example. */
export type Situation = 'rate-limited' | 'store-down' | 'quota-exceeded' | 'kafka-down';

const CONTRACT = '0x5fbdb2315678afecb367f032d93f642f64180aa3';
const UNKNOWN_CONTRACT = '0x000000000000000000000000000000000000dead';
const PLAYER = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8';
const UPDATED_AT = '2026-11-22T12:00:00.000000Z';
/** A placeholder, because each deployment signs its own cursors. */
export const EXAMPLE_CURSOR = 'AQEC…';

const get = (target: string, headers: Record<string, string> = {}) =>
  ({ method: 'GET', target, headers, body: null }) as const;

export function createTokenExamples(settings: DocsSettings): Example[] {
  const chain = getFirstChain(settings);
  const at = (contract: string) => `/v1/chains/${chain.name}/tokens/${contract}`;
  const token = settings.token ? toTokenJson(settings.token, chain) : createGoldToken(chain);
  const served = at(token.contract_address);
  return [
    example('token', 'Get a token', get(served), success(200, { result: token })),
    example('token-unchanged', 'Token not modified', get(served, { 'if-none-match': '*' }), success(304, null)),
    example(
      'token-address',
      'Invalid address',
      get(at('0x12')),
      invalid(settings, 'contract_address', `contract_address must be ${ADDRESS_EXPECTED}`),
    ),
    example(
      'token-key',
      'Unknown rate limit key',
      get(served, { 'x-api-key': 'unknown' }),
      envelope(settings, 'AUTHENTICATION_ERROR', {
        message: 'The key in x-api-key is not valid.',
        details: { header: 'x-api-key' },
      }),
    ),
    example(
      'token-unknown',
      'Contract is not an ERC-20 token',
      get(at(UNKNOWN_CONTRACT)),
      envelope(settings, 'RESOURCE_NOT_FOUND', { message: 'There is no such token.' }),
    ),
  ];
}

export function createHistoryExamples(settings: DocsSettings): Example[] {
  const chain = getFirstChain(settings);
  const at = (query: string) => `/v1/chains/${chain.name}/activity-history${query}`;
  const page = { previous_cursor: EXAMPLE_CURSOR, next_cursor: EXAMPLE_CURSOR };
  const limited = envelope(settings, 'TOO_MANY_REQUESTS_ERROR', { headers: { 'retry-after': '300' } });
  const failed = envelope(settings, 'INTERNAL_SERVER_ERROR');
  return [
    example('history', 'First page', get(at('?page_size=1')), success(200, { result: [createActivity(chain)], page })),
    example(
      'history-next',
      'Next page, empty at the end of the history',
      get(at(`?page_cursor=${CURSOR_PLACEHOLDERS.next}`)),
      success(200, { result: [], page }),
    ),
    example(
      'history-sales',
      'Sales for one contract since November 1',
      get(at(`?contract_address=${CONTRACT}&activity_type=sale&from_updated_at=2026-11-01T00:00:00Z`)),
      success(200, { result: [], page }),
    ),
    example(
      'history-page-size',
      'Page size too large',
      get(at('?page_size=201')),
      invalid(settings, 'page_size', 'page_size must be a whole number from 1 to 200'),
    ),
    example(
      'history-chain',
      'Unknown chain',
      get('/v1/chains/unknown-chain/activity-history'),
      envelope(settings, 'RESOURCE_NOT_FOUND', { message: 'There is no such chain.' }),
    ),
    { ...example('history-limited', 'Rate limit exceeded', get(at('')), limited), situation: 'rate-limited' },
    { ...example('history-failed', 'Store unavailable', get(at('')), failed), situation: 'store-down' },
  ];
}

export function createUnknownExamples(settings: DocsSettings): Example[] {
  return [
    example(
      'unknown-path',
      'Unknown path',
      get(`/v1/chains/${getFirstChain(settings).name}/history`),
      envelope(settings, 'RESOURCE_NOT_FOUND', { message: 'No operation has this path and method.' }),
    ),
  ];
}

function createGoldToken(chain: ChainSettings) {
  return {
    chain,
    contract_address: CONTRACT,
    root_contract_address: null,
    symbol: 'GOLD',
    decimals: 18,
    image_url: 'https://example.com/gold.png',
    name: 'Gold',
    verification_status: 'verified',
    updated_at: UPDATED_AT,
    is_canonical: true,
    root_chain_id: null,
    bridge_used: null,
  };
}

function createActivity(chain: ChainSettings) {
  return {
    id: '018f3a5c-7c1e-7d2a-9b1e-3f4a5b6c7d8e',
    chain,
    type: 'mint',
    details: {
      to: PLAYER,
      amount: '1',
      asset: { contract_type: 'ERC721', contract_address: CONTRACT, token_id: '7', amount: '1' },
    },
    updated_at: UPDATED_AT,
    indexed_at: UPDATED_AT,
    blockchain_metadata: {
      transaction_hash: `0x${'3f'.repeat(32)}`,
      block_number: '1042',
      transaction_index: '0',
      log_index: '2',
    },
  };
}

export const invalid = (settings: DocsSettings, field: string, message: string) =>
  envelope(settings, 'VALIDATION_ERROR', { message, details: { errors: [{ field, message }] } });

export function getFirstChain({ chains, token }: DocsSettings): ChainSettings {
  const chain = chains.find(({ name }) => name === token?.chain) ?? chains[0];
  if (chain === undefined) throw new RangeError('The documentation needs at least one chain.');
  return { id: chain.id, name: chain.name };
}
