import { generateKeyPairSync } from 'node:crypto';
import {
  type Change,
  COLLECTIONS,
  createRecordStore,
  createSignableKey,
  linkCollection,
  type RecordKind,
  type RecordStore,
  SIGNABLE_KEYS,
} from '@playline/access-keys';
import { openRedisRecords } from '@playline/access-keys/redis';
import { parseSignerKeys } from '@playline/access-keys/signer';
import { createMemoryRecordLog } from '@playline/access-keys/test';
import { CONTRACT_ABIS, openTestChain, type TestChain } from '@playline/testkit/chain';
import type { Bench } from '../figure.ts';
import { type Keep, withOpened } from '../opened.ts';
import type { Measured } from '../processes.ts';
import { repeatEvery } from '../repeat.ts';
import { startService } from '../services.ts';

export const BLOCK_MS = 1_000;
export const POLL_MS = 500;

/** A chain with one block a second, a linked collection, and a signable key that may mint. */
export interface MintScene {
  readonly chain: TestChain;
  readonly contract: `0x${string}`;
  /** Path in the chain API for the collection's mint requests. */
  readonly path: string;
  countTokens(): Promise<number>;
  /** @param openNoncesMax limit of transactions that are not final */
  startMinter(openNoncesMax: number): Promise<Measured>;
}

export const mintChainOf = ({ environmentId }: Bench): string => environmentId;

export async function openMintScene(bench: Bench, keep: Keep): Promise<MintScene> {
  const chain = keep(await openTestChain({ mining: 'manual', epochBlocks: 2 }));
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const signerKeys = JSON.stringify([privateKey.export({ format: 'jwk' })]);
  const contract = await createRecords(bench, chain, signerKeys);
  const name = mintChainOf(bench);
  const node = { name, id: `eip155:${chain.id}`, urls: [chain.rpc], pollMs: POLL_MS };
  keep(repeatEvery(BLOCK_MS, () => chain.mine()));
  const supply = { address: contract, abi: CONTRACT_ABIS['demo-erc721'], functionName: 'totalSupply' } as const;
  return {
    chain,
    contract,
    path: `/v1/chains/${name}/collections/${contract}/nfts/mint-requests`,
    countTokens: async () => Number(await chain.client.readContract(supply)),
    startMinter: (openNoncesMax) =>
      startService(bench, 'minter', {
        CHAIN_NODES: JSON.stringify([{ ...node, openNoncesMax }]),
        SIGNER_KEYS: signerKeys,
      }),
  };
}

/** Stores the records where services read them. Their log is in the memory of this process. @returns the contract */
async function createRecords(bench: Bench, chain: TestChain, signerKeys: string): Promise<`0x${string}`> {
  const owner = { projectId: 'test-bench', environmentId: bench.environmentId };
  const signerKey = parseSignerKeys(signerKeys)[0]!.publicKey;
  const { address } = await withRecords(bench, SIGNABLE_KEYS, (store) =>
    createSignableKey({ store, signerKey }, { ...owner, name: 'Bench' }),
  );
  const { erc721: contractAddress } = await chain.deployDemo(address as `0x${string}`);
  const collection = { ...owner, chain: mintChainOf(bench), contractAddress, name: 'Bench' };
  await withRecords(bench, COLLECTIONS, (store) => linkCollection({ store }, collection));
  return contractAddress;
}

const withRecords = <R extends Change, T>(
  { environment }: Bench,
  kind: RecordKind<R>,
  work: (store: RecordStore<R>) => Promise<T>,
): Promise<T> =>
  withOpened(async (keep) => {
    const view = keep(await openRedisRecords(kind, { url: environment.REDIS_URL ?? '' }));
    const pair = { view, log: createMemoryRecordLog<R>() };
    return work(createRecordStore(pair, { changedBy: 'bench', requestId: 'bench' }));
  });
