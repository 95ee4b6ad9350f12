import type { Exchange, Route } from '@playline/http';
import type { AdmitCall } from '../admit-call.ts';
import type { Chain, RequireChain } from '../chains.ts';

export interface ChainRead {
  /** Below the chain, in the syntax of express. */
  readonly path: string;
  readonly answer: (exchange: Exchange, chain: Chain, call: ChainCall) => Promise<void>;
}

export interface ChainCall {
  readonly params: Readonly<Record<string, string>>;
  /** The key or the client address. */
  readonly caller: string;
}

/** Checks before it: limit, key, chain. */
export function createChainRoute(
  { admit, requireChain }: { admit: AdmitCall; requireChain: RequireChain },
  { path, answer }: ChainRead,
): Route {
  return {
    method: 'GET',
    path: `/v1/chains/:chain_name${path}`,
    hot: true,
    handle: async (exchange, params) => {
      const caller = await admit(exchange);
      // Only wildcards are lists.
      const named = params as Readonly<Record<string, string>>;
      await answer(exchange, requireChain(named.chain_name ?? ''), { params: named, caller });
    },
  };
}

/** Only for its caller, and revalidated: more may follow a moment later. */
export const CACHE_HEADERS = ['cache-control', 'private, no-cache'] as const;
