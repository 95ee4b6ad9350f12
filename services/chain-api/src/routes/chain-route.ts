import type { Exchange, Route } from '@playline/http';
import type { AdmitCall } from '../admit-call.ts';
import type { Chain, RequireChain } from '../chains.ts';

/** An operation that reads one chain. */
export interface ChainRead {
  /** Below the chain, in the words of express. */
  readonly path: string;
  /** Answers the exchange. */
  readonly answer: (exchange: Exchange, chain: Chain, params: Readonly<Record<string, string>>) => Promise<void>;
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
      await admit(exchange);
      // Named parameters are single texts; only wildcards are lists.
      const named = params as Readonly<Record<string, string>>;
      await answer(exchange, requireChain(named.chain_name ?? ''), named);
    },
  };
}

/** Answers are for who asked, and are asked for again: the next moment may have more. */
export const CACHE_HEADERS = ['cache-control', 'private, no-cache'] as const;
