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

/** The chain of a stack, and its block maker. */
export interface ChainPart {
  /** Resolves when the demo contracts are deployed. */
  readonly contracts: Promise<unknown>;
  /** Links the demo project with the chain. @throws Error with the output of the failed command */
  link(link: Pick<DemoLink, 'env' | 'redisUrl'>): Promise<DemoChain>;
  /** Stops making blocks and saves the chain; the node itself is stopped with the stores. */
  close(): Promise<void>;
}

export interface ChainPartOptions extends Pick<StackOptions, 'chainProgram' | 'report'> {
  readonly port: number;
  /** Starts a process of the stack; resolves when it is ready. */
  readonly start: (spec: ProcessSpec) => Promise<void>;
}

/** Milliseconds between blocks. Usual for chains, and slow enough for people to follow. */
const BLOCK_MS = 1_000;
/** A fault that lasts is reported once in this time. */
const SILENCE_MS = 60_000;

/** Starts the chain of a stack. */
export function openChainPart(
  places: StackPaths,
  { port, chainProgram: program, start, report: say = () => {} }: ChainPartOptions,
): ChainPart {
  const rpc = chainAddress(port);
  const path = chainStatePath(places);
  let saidAt = Number.NEGATIVE_INFINITY;
  const onFault = (fault: unknown) => {
    // The keeper already reports that the node restarts.
    if (performance.now() - saidAt < SILENCE_MS) return;
    saidAt = performance.now();
    say(`chain: ${fault instanceof Error ? fault.message : fault}`);
  };
  const started = start(chainSpec(places, { port, ...(program !== undefined && { program }) }));
  const save = () => saveState({ rpc, path });
  let [maker, isClosed]: [BlockMaker | null, boolean] = [null, false];
  const contracts = started.then(() => {
    if (!isClosed) maker = openBlockMaker({ rpc, depth: FINAL_DEPTH, blockMs: BLOCK_MS, save, onFault });
    return deployDemo(rpc);
  });
  // If another part fails first, nothing awaits this promise. Its rejection must not be unhandled.
  contracts.catch(() => {});
  return {
    contracts,
    link: async (link) => linkDemo(places, { ...link, rpc, contracts: await contracts, report: say }),
    close: async () => {
      isClosed = true;
      await maker?.close();
    },
  };
}

/** Content of `chain.json`, which is stored with the chain's data. */
interface Kept {
  /** Hash of its first block; a different hash means a different chain. */
  readonly genesis: string;
  /** Address of the demo project's key that mints. */
  readonly signer: string;
}

type Env = Record<string, string | undefined>;
type OperatorLine = { readonly address?: string; readonly name?: string; readonly contractAddress?: string };

/** The parts to link. */
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

const demoChainPath = (places: StackPaths): string => join(places.state, 'chain.json');

/** A chain whose state was lost is a new one: it has the contracts again, but no minted tokens. */
const CHAIN_RESTARTED =
  'the chain has lost its state and begun anew: the demo contracts are at their addresses again, without the tokens that were minted. What was recorded of the chain before is of a chain that is gone: `npm run reset` begins anew with everything';

/** Operator commands that print a JSON line for each record. */
async function queryRecords(places: StackPaths, env: Env, args: readonly string[]): Promise<readonly OperatorLine[]> {
  const output = await runOperator(places, { args: [...args, '--json'], env });
  return output
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as OperatorLine);
}

const KEY = ['--kind', 'signable', ...ENVIRONMENT];

async function makeSigner(places: StackPaths, env: Env): Promise<string> {
  const [made] = await queryRecords(places, env, ['keys', 'create', ...KEY, '--name', SIGNER_NAME]);
  if (made?.address === undefined) throw new Error('the operator made no signable key');
  return made.address;
}

function linkCollection(places: StackPaths, env: Env, collection: { address: string; name: string }): Promise<unknown> {
  const contract = ['--chain', CHAIN, '--contract', collection.address, '--name', collection.name];
  return queryRecords(places, env, ['collections', 'link', ...ENVIRONMENT, ...contract]);
}

const collectionsOf = (contracts: DemoAddresses) => [
  { address: contracts.erc721, name: 'Demo heroes' },
  { address: contracts.erc1155, name: 'Demo items' },
];

/** Creates everything at once for a new stack. @returns null when a part existed already */
async function makeAll(places: StackPaths, env: Env, contracts: DemoAddresses): Promise<string | null> {
  const collections = collectionsOf(contracts).map((collection) => linkCollection(places, env, collection));
  const [signer, ...linked] = await Promise.allSettled([makeSigner(places, env), ...collections]);
  const isMade = linked.every(({ status }) => status === 'fulfilled') && signer.status === 'fulfilled';
  return isMade ? signer.value : null;
}

/**
 * Creates only missing parts. Finds the key by its name, and the links. Also used when only `chain.json` was lost. A
 * collection that an operator has unlinked stays unlinked.
 */
async function makeMissing(places: StackPaths, env: Env, contracts: DemoAddresses): Promise<string> {
  const [keys, linked] = await Promise.all([
    queryRecords(places, env, ['keys', 'list', ...KEY]),
    queryRecords(places, env, ['collections', 'list']),
  ]);
  const found = keys.find(({ name }) => name === SIGNER_NAME)?.address;
  const isLinked = (address: string) => linked.some(({ contractAddress }) => contractAddress === address);
  const missing = collectionsOf(contracts).filter(({ address }) => !isLinked(address));
  const [signer] = await Promise.all([
    found ?? makeSigner(places, env),
    ...missing.map((collection) => linkCollection(places, env, collection)),
  ]);
  return signer;
}

/** Whether services already find the records of the demo, so that no operator command is needed. */
async function areRecorded(url: string, signer: string, contracts: DemoAddresses): Promise<boolean> {
  const found = await queryRedisOnce({ url }, (client) =>
    Promise.all([
      client.hexists('access:signable-keys', signer),
      ...collectionsOf(contracts).map(({ address }) => client.hexists('access:collections', `${CHAIN}:${address}`)),
    ]),
  );
  return found.every((count) => count === 1);
}

/**
 * Links chain and demo project: a minting key and both collections. Parts that were lost, on the chain or in the
 * records, are created again; nothing is created twice. Needs Redis, the topics and the demo project.
 * @throws Error with the output of the command that failed
 */
async function linkDemo(places: StackPaths, link: DemoLink): Promise<DemoChain> {
  const { rpc, contracts, env, redisUrl, report: say } = link;
  const kept = readOptionalFile(demoChainPath(places), say) as Kept | null;
  const { hash: genesis } = await callRpc<{ hash: string }>(rpc, 'eth_getBlockByNumber', ['0x0', false]);
  if (kept !== null && kept.genesis !== genesis) say(CHAIN_RESTARTED);
  const isRecorded = kept !== null && (await areRecorded(redisUrl, kept.signer, contracts));
  const made = kept === null ? await makeAll(places, env, contracts) : null;
  const signer = isRecorded ? kept.signer : (made ?? (await makeMissing(places, env, contracts)));
  await admitSigner(rpc, signer, contracts);
  writePrivateFile(demoChainPath(places), `${JSON.stringify({ genesis, signer } satisfies Kept, null, 2)}\n`);
  return { rpc, id: CHAIN_ID, contracts, signer };
}
