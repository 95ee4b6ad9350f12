import { createHash } from 'node:crypto';
import { type ChainStore, toTokenJson } from '@playline/chain';
import { PublicError } from '@playline/errors';
import { settleWithin } from '@playline/http';
import { ADDRESS, createParameterError } from '../../parameters.ts';
import type { TokenLookup } from '../../token-lookup.ts';
import { CACHE_HEADERS, type ChainRead } from '../chain-route.ts';

export interface TokenParts {
  store: Pick<ChainStore, 'readToken'>;
  tokenLookup: TokenLookup;
  deadlineMs: number;
}

/** GET tokens/{contract_address} */
export function createTokenRead({ store, tokenLookup, deadlineMs }: TokenParts): ChainRead {
  const read = async (chain: string, address: string, caller: string) =>
    (await store.readToken(chain, address)) ?? (await tokenLookup.find(chain, address, caller));
  return {
    path: '/tokens/:contract_address',
    handle: async (exchange, chain, { params: { contract_address: text = '' }, caller }) => {
      const address = ADDRESS.parse(text);
      if (address === null)
        throw createParameterError([
          { field: 'contract_address', message: `contract_address must be ${ADDRESS.expected}` },
        ]);
      const token = await settleWithin(deadlineMs, read(chain.name, address, caller));
      if (token === null) throw new PublicError('RESOURCE_NOT_FOUND', { message: 'There is no such token.' });
      const body = JSON.stringify({ result: toTokenJson(token, chain) });
      const etag = etagOf(body);
      const headers = ['etag', etag, ...CACHE_HEADERS];
      if (isFresh(exchange.request.headers['if-none-match'], etag)) exchange.answerEmpty(304, headers);
      else exchange.answer(200, body, headers);
    },
  };
}

const HASH_BYTES = 16;
/** Weak or strong entity tag (RFC 9110, 8.8.3), which may contain commas. */
const TAG = /(?:W\/)?("[^"]*")/g;

export function etagOf(body: string): string {
  return `"${createHash('sha256').update(body).digest().subarray(0, HASH_BYTES).toString('base64url')}"`;
}

/** Weak comparison (RFC 9110, 13.1.2). */
export function isFresh(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch.trim() === '*') return true;
  return [...ifNoneMatch.matchAll(TAG)].some(([, tag]) => tag === etag);
}
