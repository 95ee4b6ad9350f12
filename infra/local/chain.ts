// The chain node of a stack, and the settings of services that use it.
import { join } from 'node:path';
import { TOPICS } from '@playline/contracts';
import { anvilArguments, anvilProgram } from '../chain/anvil.ts';
import { CHAIN_ID } from '../chain/demo.ts';
import { callRpc } from '../chain/rpc.ts';
import type { ProcessSpec } from './keeper.ts';
import { logFileOf, type StackPaths } from './paths.ts';
import type { Secrets } from './secrets.ts';
import { storeEnvironment } from './store-environment.ts';

/** With two blocks per epoch, a transaction is final after four more blocks. */
const EPOCH_BLOCKS = 2;
export const FINAL_DEPTH = 2 * EPOCH_BLOCKS;

export const chainAddress = (port: number): string => `http://127.0.0.1:${port}`;

export const chainStatePath = (paths: StackPaths): string => join(paths.state, 'data', 'chain', 'state.json');

/** @throws Error if the node does not respond or belongs to another chain */
export async function assertChain(rpc: string): Promise<boolean> {
  const id = Number(await callRpc<string>(rpc, 'eth_chainId'));
  if (id === CHAIN_ID) return true;
  throw new Error(`the node belongs to chain ${id}, not ${CHAIN_ID}`);
}

/** Describes a node on loopback that creates no blocks itself. @throws Error if anvil is not installed */
export function chainSpec(paths: StackPaths, port: number, program = anvilProgram()): ProcessSpec {
  const statePath = chainStatePath(paths);
  return {
    name: 'chain',
    program,
    args: () => anvilArguments({ port, statePath, epochBlocks: EPOCH_BLOCKS, autoMine: false }),
    env: storeEnvironment(),
    folder: join(statePath, '..'),
    logFile: logFileOf(paths, 'chain'),
    isReady: () => assertChain(chainAddress(port)),
    readyDeadlineMs: 30_000,
    stopBy: 'SIGTERM',
    stopDeadlineMs: 5_000,
  };
}

/** A chain in the chain API: the name in paths and in the log, and the id `namespace:reference` in responses. */
export interface ServedChain {
  name: string;
  id: string;
}

export const DEMO_CHAINS: readonly [ServedChain] = [{ name: 'demo-chain', id: 'eip155:31337' }];

/**
 * Returns the chain and cursor settings for the chain API, and the node settings for the chain indexer and the minter.
 * @param chainPort port of the stack's chain; if undefined, nothing is indexed or minted
 */
export function chainSettings(
  { cursorSecret }: Pick<Secrets, 'cursorSecret'>,
  chainPort?: number,
): Record<string, string> {
  const urls = chainPort === undefined ? [] : [chainAddress(chainPort)];
  // The chain creates blocks only for transactions, so hours without a block are normal.
  const nodes = DEMO_CHAINS.map((chain) => ({ ...chain, urls, stillAfterS: 0 }));
  return {
    CHAINS: JSON.stringify(DEMO_CHAINS),
    CHAIN_NODES: JSON.stringify(urls.length === 0 ? [] : nodes),
    CURSOR_KEYS: `1=${cursorSecret}`,
    ACTIVITY_PARTITIONS: String(TOPICS.activities.partitions),
  };
}

export const signingSettings = ({ signerKeys }: Pick<Secrets, 'signerKeys'>): Record<string, string> => ({
  SIGNER_KEYS: signerKeys,
});
