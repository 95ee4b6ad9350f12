import type { Exchange, Route } from '@playline/http';
import type { AdmitCall } from '../admit-call.ts';
import type { Chain, RequireChain } from '../chains.ts';

export interface ChainRead {
  /** Express path pattern, relative to the chain. */
  readonly path: string;
  readonly handle: (exchange: Exchange, chain: Chain, call: ChainCall) => Promise<void>;
}

export interface ChainCall {
  readonly params: Readonly<Record<string, string>>;
  /** Rate limit key or client address. */
  readonly caller: string;
}

/** Checks the rate limit, the key and the chain before the handler runs. */
export function createChainRoute(
  { admit, requireChain }: { admit: AdmitCall; requireChain: RequireChain },
  { path, handle }: ChainRead,
): Route {
  return {
    method: 'GET',
    path: `/v1/chains/:chain_name${path}`,
    hot: true,
    handle: async (exchange, params) => {
      const caller = await admit(exchange);
      // The path has no wildcards, so all values are strings.
      const named = params as Readonly<Record<string, string>>;
      await handle(exchange, requireChain(named.chain_name ?? ''), { params: named, caller });
    },
  };
}

/** Private and always revalidated, because new data can arrive at any time. */
export const CACHE_HEADERS = ['cache-control', 'private, no-cache'] as const;
