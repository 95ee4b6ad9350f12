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

/**
 * What a stack tells its chain API of chains and cursors, and its chain indexer of chains.
 * @param chainPort of its chain; absent: it has none, and nothing is indexed
 */
export function chainSettings(
  { cursorSecret }: Pick<Secrets, 'cursorSecret'>,
  chainPort?: number,
): Record<string, string> {
  const [{ name, id }] = DEMO_CHAINS;
  const rpc = nodesOf(chainPort);
  return {
    CHAINS: JSON.stringify(DEMO_CHAINS),
    CHAINS_INDEXED: JSON.stringify(rpc.length === 0 ? [] : [{ name, id, rpc }]),
    CURSOR_KEYS: `1=${cursorSecret}`,
    ACTIVITY_PARTITIONS: String(TOPICS.activities.partitions),
  };
}

/** The chains that a chain API with these settings serves. */
export function servedChainsOf({ CHAINS = '[]' }: Record<string, string>): ServedChain[] {
  return JSON.parse(CHAINS);
}

const nodesOf = (chainPort?: number) => (chainPort === undefined ? [] : [chainAddress(chainPort)]);

/** How often the node of this machine is looked at while something is to be minted. */
const POLL_MS = 500;

/** What a stack tells whoever signs, and nobody else. @param chainPort of its chain; absent: it has none */
export function signingSettings(
  { signerKeys }: Pick<Secrets, 'signerKeys'>,
  chainPort?: number,
): Record<string, string> {
  const urls = nodesOf(chainPort);
  const nodes = urls.length === 0 ? [] : DEMO_CHAINS.map(({ name, id }) => ({ name, id, urls, pollMs: POLL_MS }));
  return { CHAIN_NODES: JSON.stringify(nodes), SIGNER_KEYS: signerKeys };
}
