import {
  type CollectionRecord,
  countFault,
  type KeyRecord,
  type KeyVerifier,
  type UsageCounter,
} from '@playline/access-keys';
import { PublicError } from '@playline/errors';
import { ClientDisconnected, type Exchange, type Route } from '@playline/http';
import type { MintCollection, QuotaPolicy } from '@playline/mints';
import type { AdmitCall } from '../admit-call.ts';
import type { Chain, RequireChain } from '../chains.ts';
import type { Collections } from '../minting/collections.ts';
import { addEmptyQuotaHeaders } from '../minting/quota-headers.ts';
import { ADDRESS, createParameterError } from '../parameters.ts';

export interface CollectionCall {
  readonly exchange: Exchange;
  readonly chain: Chain;
  readonly collection: MintCollection;
  readonly record: CollectionRecord;
  readonly params: Readonly<Record<string, string>>;
  /** Checks the key and the collection's owner again, because they can change while the body is arriving. */
  readonly reauthorise: () => Promise<void>;
}

export interface CollectionOperation {
  readonly method: 'GET' | 'POST';
  /** Express path pattern, relative to the collection. */
  readonly path: string;
  /** Quota shown in every 429. */
  readonly policy?: QuotaPolicy;
  readonly handle: (call: CollectionCall) => Promise<void>;
}

export interface CollectionRouteParts {
  readonly admit: AdmitCall;
  readonly requireChain: RequireChain;
  readonly authorise: Authorise;
  readonly collections: Pick<Collections, 'require'>;
  readonly usage: Pick<UsageCounter, 'used' | 'refused'>;
}

/** Checks the rate limit, secret key, chain, address and owner before the handler runs. */
export function createCollectionRoute(parts: CollectionRouteParts, operation: CollectionOperation): Route {
  const { admit, requireChain, authorise, collections, usage } = parts;
  const run = async (exchange: Exchange, key: KeyRecord, params: Readonly<Record<string, string>>) => {
    const chain = requireChain(params.chain_name ?? '');
    const contractAddress = requireAddress(params.contract_address ?? '');
    const collection = { chain: chain.name, contractAddress };
    const record = await collections.require(collection, key);
    const reauthorise = async () => void (await collections.require(collection, await authorise(exchange)));
    await operation.handle({ exchange, chain, collection, record, params, reauthorise });
  };
  return {
    method: operation.method,
    path: `/v1/chains/:chain_name/collections/:contract_address${operation.path}`,
    hot: true,
    handle: async (exchange, params) => {
      await admit(exchange).catch((fault: unknown) => {
        if (operation.policy !== undefined) addEmptyQuotaHeaders(exchange, operation.policy, fault);
        throw fault;
      });
      const key = await authorise(exchange);
      try {
        // The path has no wildcards, so all values are strings.
        await run(exchange, key, params as Readonly<Record<string, string>>);
        usage.used(key, 0, 0);
      } catch (fault) {
        // A disconnected caller does not count as a refusal.
        if (!(fault instanceof ClientDisconnected)) countFault(usage, key, { fault, traceId: exchange.traceId });
        throw fault;
      }
    },
  };
}

function requireAddress(text: string): string {
  const address = ADDRESS.parse(text);
  if (address !== null) return address;
  throw createParameterError([{ field: 'contract_address', message: `contract_address must be ${ADDRESS.expected}` }]);
}

type Authorise = (exchange: Exchange) => Promise<KeyRecord>;

/** @throws PublicError VALIDATION_ERROR for a missing key, UNAUTHORISED_REQUEST for an invalid key */
export function createAuthorise(header: string, verify: KeyVerifier): Authorise {
  return async (exchange) => {
    const key = exchange.request.headers[header];
    if (typeof key !== 'string' || key === '') {
      const message = `The header ${header} is missing.`;
      throw new PublicError('VALIDATION_ERROR', { message, details: { header } });
    }
    const record = await verify(key);
    if (record === null) throw new PublicError('UNAUTHORISED_REQUEST', { details: { header } });
    return record;
  };
}
