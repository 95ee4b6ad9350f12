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
import { showLimited } from '../minting/quota-headers.ts';
import { ADDRESS, invalidParameters } from '../parameters.ts';

export interface CollectionCall {
  readonly exchange: Exchange;
  readonly chain: Chain;
  readonly collection: MintCollection;
  readonly record: CollectionRecord;
  readonly params: Readonly<Record<string, string>>;
  /** Key and owner may have ended while a body arrived. */
  readonly authoriseAgain: () => Promise<void>;
}

export interface CollectionOperation {
  readonly method: 'GET' | 'POST';
  /** Below the collection, in the syntax of express. */
  readonly path: string;
  /** A refusal under any limit shows this quota. */
  readonly policy?: QuotaPolicy;
  readonly answer: (call: CollectionCall) => Promise<void>;
}

export interface CollectionRouteParts {
  readonly admit: AdmitCall;
  readonly requireChain: RequireChain;
  readonly authorise: Authorise;
  readonly collections: Pick<Collections, 'require'>;
  readonly usage: Pick<UsageCounter, 'used' | 'refused'>;
}

/** Checks before it: limit of calls, secret key, chain, address, owner. */
export function createCollectionRoute(parts: CollectionRouteParts, operation: CollectionOperation): Route {
  const { admit, requireChain, authorise, collections, usage } = parts;
  const serve = async (exchange: Exchange, key: KeyRecord, params: Readonly<Record<string, string>>) => {
    const chain = requireChain(params.chain_name ?? '');
    const contractAddress = requireAddress(params.contract_address ?? '');
    const collection = { chain: chain.name, contractAddress };
    const record = await collections.require(collection, key);
    const authoriseAgain = async () => void (await collections.require(collection, await authorise(exchange)));
    await operation.answer({ exchange, chain, collection, record, params, authoriseAgain });
  };
  return {
    method: operation.method,
    path: `/v1/chains/:chain_name/collections/:contract_address${operation.path}`,
    hot: true,
    handle: async (exchange, params) => {
      await admit(exchange).catch((fault: unknown) => {
        if (operation.policy !== undefined) showLimited(exchange, operation.policy, fault);
        throw fault;
      });
      const key = await authorise(exchange);
      try {
        // Only wildcards are lists.
        await serve(exchange, key, params as Readonly<Record<string, string>>);
        usage.used(key, 0, 0);
      } catch (fault) {
        // A caller that has disconnected was not refused.
        if (!(fault instanceof ClientDisconnected)) countFault(usage, key, { fault, traceId: exchange.traceId });
        throw fault;
      }
    },
  };
}

function requireAddress(text: string): string {
  const address = ADDRESS.parse(text);
  if (address !== null) return address;
  throw invalidParameters([{ field: 'contract_address', message: `contract_address must be ${ADDRESS.expected}` }]);
}

type Authorise = (exchange: Exchange) => Promise<KeyRecord>;

/** Missing key: VALIDATION_ERROR; invalid one: UNAUTHORISED_REQUEST. Contract, "Mints and metadata" and "Keys". */
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
