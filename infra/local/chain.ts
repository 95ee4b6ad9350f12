import { join } from 'node:path';
import { TOPICS } from '@playline/contracts';
import { anvilArguments, anvilProgram } from '../chain/anvil.ts';
import { CHAIN_ID } from '../chain/demo.ts';
import { callRpc } from '../chain/rpc.ts';
import type { ProcessSpec } from './keeper.ts';
import { logFileOf, type StackPaths } from './paths.ts';
import type { Secrets } from './secrets.ts';
import { storeEnvironment } from './store-environment.ts';

/** With two blocks in an epoch, a transaction is final after four more blocks. */
const EPOCH_BLOCKS = 2;
/** Number of blocks after which a transaction is final. */
export const FINAL_DEPTH = 2 * EPOCH_BLOCKS;

export function chainAddress(port: number): string {
  return `http://127.0.0.1:${port}`;
}

/** The last saved state of the chain. */
export const chainStatePath = (places: StackPaths): string => join(places.state, 'data', 'chain', 'state.json');

/** @throws Error when the node answers for another chain, or does not answer */
export async function assertChain(rpc: string): Promise<boolean> {
  const id = Number(await callRpc<string>(rpc, 'eth_chainId'));
  if (id === CHAIN_ID) return true;
  throw new Error(`it is chain ${id}, not ${CHAIN_ID}`);
}

/**
 * A separate node for the stack's chain, on loopback. It makes no blocks by itself.
 * @throws Error when it is not installed
 */
export function chainSpec(places: StackPaths, { port, program }: { port: number; program?: string }): ProcessSpec {
  const statePath = chainStatePath(places);
  return {
    name: 'chain',
    program: program ?? anvilProgram(),
    // After the first start there is a saved state.
    args: () => anvilArguments({ port, statePath, epochBlocks: EPOCH_BLOCKS, mining: 'asked' }),
    env: storeEnvironment(),
    folder: join(statePath, '..'),
    logFile: logFileOf(places, 'chain'),
    isReady: () => assertChain(chainAddress(port)),
    readyDeadlineMs: 30_000,
    stopBy: 'SIGTERM',
    stopDeadlineMs: 5_000,
  };
}

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
