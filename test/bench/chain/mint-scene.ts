import { generateKeyPairSync } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
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
import type { Measured } from '../processes.ts';
import { openReady } from './open-ready.ts';

/** Interval of blocks on the chain of a local stack. */
export const BLOCK_MS = 1_000;
const EPOCH_BLOCKS = 2;
/** The minter's interval of polls in a local stack. */
export const POLL_MS = 500;
/** Project of the bench's secret key. */
const PROJECT = 'test-bench';

/** A chain with one block a second, a linked collection, and a signable key that may mint. */
export interface MintScene {
  readonly chain: TestChain;
  readonly contract: `0x${string}`;
  /** Path in the chain API for the collection's mint requests. */
  readonly path: string;
  /** Number of tokens of the contract. */
  countTokens(): Promise<number>;
  /** Starts a minter as it is deployed. @param openNoncesMax limit of transactions that are not final */
  openMinter(openNoncesMax: number): Promise<Measured>;
  close(): Promise<void>;
}

/** Name of this chain in the topics of a bench. */
export const mintChainOf = ({ environmentId }: Bench): string => environmentId;

/** Starts a chain, and creates a collection and a signable key in the bench's environment. */
export async function openMintScene(bench: Bench): Promise<MintScene> {
  const chain = await openTestChain({ mining: 'manual', epochBlocks: EPOCH_BLOCKS });
  try {
    const signerKeys = makeSignerKeys();
    const { contract } = await makeRecords(bench, chain, signerKeys);
    const name = mintChainOf(bench);
    const node = { name, id: `eip155:${chain.id}`, urls: [chain.rpc], pollMs: POLL_MS };
    const blocks = openBlocks(chain);
    const supply = { address: contract, abi: CONTRACT_ABIS['demo-erc721'], functionName: 'totalSupply' } as const;
    return {
      chain,
      contract,
      path: `/v1/chains/${name}/collections/${contract}/nfts/mint-requests`,
      countTokens: async () => Number(await chain.client.readContract(supply)),
      openMinter: (openNoncesMax) =>
        openReady(bench, 'minter', {
          CHAIN_NODES: JSON.stringify([{ ...node, openNoncesMax }]),
          SIGNER_KEYS: signerKeys,
        }),
      close: async () => {
        await blocks.close();
        await chain.close();
      },
    };
  } catch (error) {
    await chain.close();
    throw error;
  }
}

function makeSignerKeys(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return JSON.stringify([privateKey.export({ format: 'jwk' })]);
}

/** Stores the records where services look them up. Their log is in the memory of this process. */
async function makeRecords(bench: Bench, chain: TestChain, signerKeys: string): Promise<{ contract: `0x${string}` }> {
  const { environmentId } = bench;
  const owner = { projectId: PROJECT, environmentId };
  const signerKey = parseSignerKeys(signerKeys)[0]!.publicKey;
  const { address } = await withRecords(bench, SIGNABLE_KEYS, (store) =>
    createSignableKey({ store, signerKey }, { ...owner, name: 'Bench' }),
  );
  const { erc721: contract } = await chain.deployDemo(address as `0x${string}`);
  const collection = { ...owner, chain: mintChainOf(bench), contractAddress: contract, name: 'Bench' };
  await withRecords(bench, COLLECTIONS, (store) => linkCollection({ store }, collection));
  return { contract };
}

async function withRecords<R extends Change, T>(
  { environment }: Bench,
  kind: RecordKind<R>,
  work: (store: RecordStore<R>) => Promise<T>,
): Promise<T> {
  const view = await openRedisRecords(kind, { url: environment.REDIS_URL ?? '' });
  try {
    const pair = { view, log: createMemoryRecordLog<R>() };
    return await work(createRecordStore(pair, { changedBy: 'bench', requestId: 'bench' }));
  } finally {
    await view.close();
  }
}

/** Makes blocks at a steady rate, with or without transactions. */
function openBlocks(chain: TestChain): { close(): Promise<void> } {
  const ended = new AbortController();
  const run = async () => {
    for (let nextMs = performance.now() + BLOCK_MS; !ended.signal.aborted; nextMs += BLOCK_MS) {
      await delay(Math.max(0, nextMs - performance.now()), undefined, { signal: ended.signal }).catch(() => {});
      if (!ended.signal.aborted) await chain.mine();
    }
  };
  const running = run();
  // `close` reports the error. Until then it must not count as an unhandled rejection.
  running.catch(() => {});
  return {
    close: () => {
      ended.abort();
      return running;
    },
  };
}
