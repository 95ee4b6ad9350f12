/** Shared setup for the chain journeys: a real node, separate stores, and operator commands for both. */
import { openOwnStores, openRedisDatabase } from '@playline/testkit';
import { CONTRACT_ABIS, openTestChain } from '@playline/testkit/chain';
import { encodeFunctionData, type Hash } from 'viem';
import { type Exit, OPERATOR, runProgram } from './stack.ts';

export const mainOf = (service: string) => new URL(`../../services/${service}/src/main.ts`, import.meta.url).pathname;
/** Number of further blocks after which a block is final: two epochs of two blocks. */
export const FINAL_AFTER = 4;
export const CHAIN_NAME = 'demo-chain';
export const CHAIN_ID = 'eip155:31337';

export type ChainStores = Awaited<ReturnType<typeof openChainStores>>;

/** @param options.partitions per topic @param options.node additional settings for the chain in CHAIN_NODES */
export async function openChainStores(options: { partitions?: number; node?: object } = {}) {
  const chain = await openTestChain();
  const stores = await openOwnStores(options.partitions === undefined ? {} : { partitions: options.partitions });
  const redis = await openRedisDatabase();
  const node = { name: CHAIN_NAME, id: CHAIN_ID, urls: [chain.rpc], pollMs: 100, ...options.node };
  const environment = { ...stores.environment, CHAIN_NODES: JSON.stringify([node]) };
  return {
    chain,
    prefix: stores.prefix,
    environment: { ...environment, REDIS_URL: redis.url },
    operate: (...args: readonly string[]): Promise<Exit> => runProgram(OPERATOR, args, { env: environment }),
    close: async () => {
      await chain.close();
      await Promise.all([redis.close(), stores.close()]);
    },
  };
}

export const call = (contract: keyof typeof CONTRACT_ABIS, functionName: string, args: readonly unknown[]): Hash =>
  encodeFunctionData({ abi: CONTRACT_ABIS[contract], functionName, args } as never);
