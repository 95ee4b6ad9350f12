import { TOPICS } from '@playline/contracts';
import { chainAddress } from './chain.ts';
import type { Secrets } from './secrets.ts';

/** A chain that is served: its name in paths and in the log, and `namespace:reference` in answers. */
export interface ServedChain {
  name: string;
  id: string;
}

/** A chain as development nodes number theirs. */
export const DEMO_CHAINS: readonly [ServedChain] = [{ name: 'demo-chain', id: 'eip155:31337' }];

/** It makes blocks only while something is to be minted: none for hours is no alarm. */
const MAY_STAND_STILL = { stillAfterS: 0 };

/**
 * What a stack tells its chain API of chains and cursors, and its chain indexer and minter of nodes.
 * @param chainPort of its chain; absent: it has none, and nothing is indexed or minted
 */
export function chainSettings(
  { cursorSecret }: Pick<Secrets, 'cursorSecret'>,
  chainPort?: number,
): Record<string, string> {
  const urls = chainPort === undefined ? [] : [chainAddress(chainPort)];
  const nodes = DEMO_CHAINS.map((chain) => ({ ...chain, urls, ...MAY_STAND_STILL }));
  return {
    CHAINS: JSON.stringify(DEMO_CHAINS),
    CHAIN_NODES: JSON.stringify(urls.length === 0 ? [] : nodes),
    CURSOR_KEYS: `1=${cursorSecret}`,
    ACTIVITY_PARTITIONS: String(TOPICS.activities.partitions),
  };
}

/** The chains that a chain API with these settings serves. */
export function servedChainsOf({ CHAINS = '[]' }: Record<string, string>): ServedChain[] {
  return JSON.parse(CHAINS);
}

/** What a stack tells whoever signs, and nobody else. */
export function signingSettings({ signerKeys }: Pick<Secrets, 'signerKeys'>): Record<string, string> {
  return { SIGNER_KEYS: signerKeys };
}
