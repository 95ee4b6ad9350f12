import { TOPICS } from '@playline/contracts';
import { chainAddress } from './chain.ts';
import type { Secrets } from './secrets.ts';

/** A chain that the chain API serves: its name in paths and on the log, and `namespace:reference` in answers. */
export interface ServedChain {
  name: string;
  id: string;
}

/** The demo chain has the number that development nodes use. */
export const DEMO_CHAINS: readonly [ServedChain] = [{ name: 'demo-chain', id: 'eip155:31337' }];

/** The chain makes blocks only while something is minted, so hours without a block are normal. */
const MAY_STAND_STILL = { stillAfterS: 0 };

/**
 * Settings of chains and cursors for the chain API, and of nodes for the chain indexer and the minter.
 * @param chainPort port of the stack's chain; without one nothing is indexed or minted
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

/** Settings only for services that sign. */
export function signingSettings({ signerKeys }: Pick<Secrets, 'signerKeys'>): Record<string, string> {
  return { SIGNER_KEYS: signerKeys };
}
