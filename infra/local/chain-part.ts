import { join } from 'node:path';
import { type BlockMaker, openBlockMaker } from '../chain/block-maker.ts';
import { CHAIN_ID } from '../chain/demo.ts';
import { admitSigner, type DemoAddresses, deployDemo } from '../chain/deploy-demo.ts';
import { callRpc } from '../chain/rpc.ts';
import { saveState } from '../chain/state-file.ts';
import { chainAddress, chainSpec, chainStatePath, DEMO_CHAINS, FINAL_DEPTH } from './chain.ts';
import { runOperator } from './deployment.ts';
import type { ProcessSpec } from './keeper.ts';
import type { StackPaths } from './paths.ts';
import { readOptionalFile, writePrivateFile } from './private-file.ts';
import { queryRedisOnce } from './redis.ts';
import type { DemoChain } from './stack-file.ts';
import type { StackOptions } from './stack-options.ts';

/** The chain of a stack, its block maker and the demo project's objects on it. */
export interface ChainPart {
  /** Resolves when the demo contracts are deployed. */
  readonly contracts: Promise<unknown>;
  /** Links the demo project. @throws Error with the output of the failed command */
  link(link: Pick<DemoLink, 'env' | 'redisUrl'>): Promise<DemoChain>;
  /** Stops making blocks and saves the chain; the node itself is stopped with the stores. */
  close(): Promise<void>;
}

export interface ChainPartOptions extends Pick<StackOptions, 'chainProgram' | 'report'> {
  readonly port: number;
  readonly start: (spec: ProcessSpec) => Promise<void>;
}

const BLOCK_MS = 1_000;
/** Least time between two reports of a lasting fault. */
const SILENCE_MS = 60_000;

export function openChainPart(
  paths: StackPaths,
  { port, chainProgram: program, start, report = () => {} }: ChainPartOptions,
): ChainPart {
  const rpc = chainAddress(port);
  const path = chainStatePath(paths);
  let reportedAt = Number.NEGATIVE_INFINITY;
  const onFault = (fault: unknown) => {
    // The keeper already reports that the node restarts.
    if (performance.now() - reportedAt < SILENCE_MS) return;
    reportedAt = performance.now();
    report(`chain: ${fault instanceof Error ? fault.message : fault}`);
  };
  const started = start(chainSpec(paths, { port, ...(program !== undefined && { program }) }));
  const save = () => saveState({ rpc, path });
  let [maker, isClosed]: [BlockMaker | null, boolean] = [null, false];
  const contracts = started.then(() => {
    if (!isClosed) maker = openBlockMaker({ rpc, depth: FINAL_DEPTH, blockMs: BLOCK_MS, save, onFault });
    return deployDemo(rpc);
  });
  // Nothing awaits this promise if another part fails first.
  contracts.catch(() => {});
  return {
    contracts,
    link: async (link) => linkDemo(paths, { ...link, rpc, contracts: await contracts, report }),
    close: async () => {
      isClosed = true;
      await maker?.close();
    },
  };
}

/** `chain.json` */
interface StoredLink {
  /** Hash of the first block, which identifies the chain. */
  readonly genesis: string;
  readonly signer: string;
}

type Env = Record<string, string | undefined>;
type OperatorLine = { readonly address?: string; readonly name?: string; readonly contractAddress?: string };

interface DemoLink {
  readonly rpc: string;
  readonly contracts: DemoAddresses;
  /** Settings of the stack, for the operator's commands. */
  readonly env: Env;
  /** Redis with the access records. */
  readonly redisUrl: string;
  readonly report: (line: string) => void;
}

const ENVIRONMENT = ['--environment', 'development'];
const SIGNER_NAME = 'Demo minter';
const [{ name: CHAIN }] = DEMO_CHAINS;

const demoChainPath = (paths: StackPaths): string => join(paths.state, 'chain.json');

const CHAIN_RESTARTED =
  'the chain lost its state and started from its first block: the demo contracts are deployed again, minted tokens are gone, and stored history belongs to the old chain. Remove all data with `npm run reset`';

/** Runs an operator command that prints a JSON line for each record. */
async function queryRecords(paths: StackPaths, env: Env, args: readonly string[]): Promise<readonly OperatorLine[]> {
  const output = await runOperator(paths, { args: [...args, '--json'], env });
  return output
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as OperatorLine);
}

const KEY = ['--kind', 'signable', ...ENVIRONMENT];

async function makeSigner(paths: StackPaths, env: Env): Promise<string> {
  const [made] = await queryRecords(paths, env, ['keys', 'create', ...KEY, '--name', SIGNER_NAME]);
  if (made?.address === undefined) throw new Error('keys create printed no address');
  return made.address;
}

function linkCollection(paths: StackPaths, env: Env, collection: { address: string; name: string }): Promise<unknown> {
  const contract = ['--chain', CHAIN, '--contract', collection.address, '--name', collection.name];
  return queryRecords(paths, env, ['collections', 'link', ...ENVIRONMENT, ...contract]);
}

const collectionsOf = (contracts: DemoAddresses) => [
  { address: contracts.erc721, name: 'Demo heroes' },
  { address: contracts.erc1155, name: 'Demo items' },
];

/** Creates everything in parallel for a new stack. @returns null when a part existed already */
async function makeAll(paths: StackPaths, env: Env, contracts: DemoAddresses): Promise<string | null> {
  const collections = collectionsOf(contracts).map((collection) => linkCollection(paths, env, collection));
  const [signer, ...linked] = await Promise.allSettled([makeSigner(paths, env), ...collections]);
  const isMade = linked.every(({ status }) => status === 'fulfilled') && signer.status === 'fulfilled';
  return isMade ? signer.value : null;
}

/** Creates only missing parts, for example when `chain.json` was lost. Unlinked collections stay unlinked. */
async function makeMissing(paths: StackPaths, env: Env, contracts: DemoAddresses): Promise<string> {
  const [keys, linked] = await Promise.all([
    queryRecords(paths, env, ['keys', 'list', ...KEY]),
    queryRecords(paths, env, ['collections', 'list']),
  ]);
  const found = keys.find(({ name }) => name === SIGNER_NAME)?.address;
  const isLinked = (address: string) => linked.some(({ contractAddress }) => contractAddress === address);
  const missing = collectionsOf(contracts).filter(({ address }) => !isLinked(address));
  const [signer] = await Promise.all([
    found ?? makeSigner(paths, env),
    ...missing.map((collection) => linkCollection(paths, env, collection)),
  ]);
  return signer;
}

/** Whether the access records exist, so that no operator command is needed. */
async function areRecorded(url: string, signer: string, contracts: DemoAddresses): Promise<boolean> {
  const found = await queryRedisOnce({ url }, (client) =>
    Promise.all([
      client.hexists('access:signable-keys', signer),
      ...collectionsOf(contracts).map(({ address }) => client.hexists('access:collections', `${CHAIN}:${address}`)),
    ]),
  );
  return found.every((count) => count === 1);
}

/** Creates the minting key and both collections where missing. Needs Redis, the topics and the demo project. */
async function linkDemo(paths: StackPaths, link: DemoLink): Promise<DemoChain> {
  const { rpc, contracts, env, redisUrl, report } = link;
  const kept = readOptionalFile(demoChainPath(paths), report) as StoredLink | null;
  const { hash: genesis } = await callRpc<{ hash: string }>(rpc, 'eth_getBlockByNumber', ['0x0', false]);
  if (kept !== null && kept.genesis !== genesis) report(CHAIN_RESTARTED);
  const isRecorded = kept !== null && (await areRecorded(redisUrl, kept.signer, contracts));
  const made = kept === null ? await makeAll(paths, env, contracts) : null;
  const signer = isRecorded ? kept.signer : (made ?? (await makeMissing(paths, env, contracts)));
  await admitSigner(rpc, signer, contracts);
  writePrivateFile(demoChainPath(paths), `${JSON.stringify({ genesis, signer } satisfies StoredLink, null, 2)}\n`);
  return { rpc, id: CHAIN_ID, contracts, signer };
}
