import type { Exchange, Route } from '@playline/http';
import type { AdmitCall } from '../admit-call.ts';
import type { Chain, RequireChain } from '../chains.ts';

/** An operation that reads one chain. */
export interface ChainRead {
  /** Path below the chain, in the syntax of express. */
  readonly path: string;
  /** Answers the exchange. */
  readonly answer: (exchange: Exchange, chain: Chain, call: ChainCall) => Promise<void>;
}

export interface ChainCall {
  /** Parameters of the path. */
  readonly params: Readonly<Record<string, string>>;
  /** The key or the client address, for limits. */
  readonly caller: string;
}

export interface ChainRouteParts {
  admit: AdmitCall;
  requireChain: RequireChain;
}

/** Builds the route of an operation. Before it come, in this order: limit, key, chain. */
export function createChainRoute({ admit, requireChain }: ChainRouteParts, { path, answer }: ChainRead): Route {
  return {
    method: 'GET',
    path: `/v1/chains/:chain_name${path}`,
    hot: true,
    handle: async (exchange, params) => {
      const caller = await admit(exchange);
      // Named parameters are single texts; only wildcards are lists.
      const named = params as Readonly<Record<string, string>>;
      await answer(exchange, requireChain(named.chain_name ?? ''), { params: named, caller });
    },
  };
}

/** Caches may keep an answer only for its caller and must ask again, since there may be more a moment later. */
export const CACHE_HEADERS = ['cache-control', 'private, no-cache'] as const;
