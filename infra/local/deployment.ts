// Runs project commands for a stack: creates topics, tables, keys, the identity epoch, and the demo chain objects.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { toFamily } from '@playline/stores/redis';
import { type BlockMaker, openBlockMaker } from '../chain/block-maker.ts';
import { CHAIN_ID } from '../chain/demo.ts';
import { type DemoAddresses, deployDemo, prepareSigner } from '../chain/deploy-demo.ts';
import { callRpc } from '../chain/rpc.ts';
import { saveState } from '../chain/state-file.ts';
import { chainAddress, chainSpec, chainStatePath, DEMO_CHAINS, FINAL_DEPTH } from './chain.ts';
import { CommandError, runCommand } from './command.ts';
import { EXIT } from './command-table.mjs';
import type { ProcessSpec } from './keeper.ts';
import { parseNodeName } from './node-names.ts';
import { logFileOf, type StackPaths } from './paths.ts';
import { readJsonFile, readOptionalFile, writePrivateFile } from './private-file.ts';
import { queryRedisOnce } from './redis.ts';
import { environmentWithoutStores } from './services.ts';
import type { DemoChain, KeyPair, StackAddresses } from './stack-file.ts';
import type { NodeCounts, StackOptions } from './stack-options.ts';

type Env = Record<string, string | undefined>;

/** @throws Error with the command and the last lines of its output */
async function runMain(
  paths: StackPaths,
  { main, args = [], env, log }: { main: string; args?: string[]; env: Env; log: string },
): Promise<string> {
  const environment = { ...environmentWithoutStores(), ...env };
  const options = { folder: paths.checkout, env: environment, logFile: logFileOf(paths, log) };
  try {
    return await runCommand(process.execPath, [join(paths.checkout, main), ...args], options);
  } catch (error) {
    throw new Error(`${[main, ...args].join(' ')} failed: ${(error as Error).message}`, { cause: error });
  }
}

/** Creates the topics and registers the schemas. Can be repeated. */
export async function deployKafka(paths: StackPaths, env: Env): Promise<void> {
  await runMain(paths, { main: 'infra/kafka/main.ts', env, log: 'deploy-kafka' });
}

/** Applies the SQL files. Can be repeated. Requires the operator account in `env`. */
export async function deployClickHouse(paths: StackPaths, env: Env): Promise<void> {
  await runMain(paths, { main: 'infra/clickhouse/main.ts', env, log: 'deploy-clickhouse' });
}

/** Runs an operator command. @returns its standard output @throws Error with the last lines of its output */
const runOperator = (paths: StackPaths, { args, env }: { args: string[]; env: Env }): Promise<string> =>
  runMain(paths, { main: 'services/operator/src/main.ts', args, env, log: 'operator' });

const ENVIRONMENTS = ['production', 'development'] as const;
const KINDS = ['publishable', 'secret'] as const;
/** The default of ACCESS_KEY_PREFIX in gateway and operator. */
const DEFAULT_KEY_PREFIX = 'svcapik';
const NO_KEYS: KeyPair = { publishable: '', secret: '' };
export type DemoKeys = Record<(typeof ENVIRONMENTS)[number], KeyPair>;

async function createKey(
  paths: StackPaths,
  { environment, kind, env }: { environment: string; kind: string; env: Env },
) {
  // After an interrupted set-up, an existing key cannot be printed again, so the key is replaced.
  const args = ['keys', 'create', '--environment', environment, '--kind', kind, '--replace', '--json'];
  const output = await runOperator(paths, { args, env });
  const { key } = JSON.parse(output.trim().split('\n').at(-1) ?? 'null') as { key?: unknown };
  if (typeof key !== 'string') throw new Error('keys create printed no key');
  return key;
}

export const demoKeysPath = (paths: StackPaths): string => join(paths.state, 'keys.json');

/** @returns the demo keys, or null before the first start */
export const readDemoKeys = (paths: StackPaths): DemoKeys | null =>
  readJsonFile(demoKeysPath(paths)) as DemoKeys | null;

/** File that records the TOPIC_PREFIX of the data. */
const topicsPath = (paths: StackPaths) => join(paths.state, 'topics.json');

/** @throws Error if the data of this stack was created with a different TOPIC_PREFIX */
export function assertSameTopics(paths: StackPaths, env: Env): void {
  const stored = readJsonFile(topicsPath(paths)) as { prefix: string } | null;
  const prefix = env.TOPIC_PREFIX ?? '';
  if (readDemoKeys(paths) === null || (stored?.prefix ?? '') === prefix) return;
  throw new Error(
    `TOPIC_PREFIX is '${prefix}', but the data of this stack was created with '${stored?.prefix ?? ''}'. Restore the setting, or delete the data with \`npm run reset\``,
  );
}

/** @throws Error if a store's data was created by another number of nodes, which divide the data differently */
export function assertSameNodes(paths: StackPaths, counts: NodeCounts): void {
  const data = join(paths.state, 'data');
  const kinds = (existsSync(data) ? readdirSync(data) : []).map((name) => parseNodeName(name).kind);
  for (const [store, count] of Object.entries(counts)) {
    const found = kinds.filter((kind) => kind === store).length;
    if (found === 0 || found === count) continue;
    const flag = found > count ? 'Pass --cluster' : 'Omit --cluster';
    throw new Error(
      `the data of ${store} was created by ${found === 1 ? '1 node' : `${found} nodes`} instead of ${count}. ${flag}, or delete the data with \`npm run reset\``,
    );
  }
}

/** Returns true if a stored key was revoked ('') or its prefix differs from that of new keys. */
const isUnusable = (key: string, prefix: string): boolean =>
  !['', '_test'].some((suffix) => new RegExp(`^[ps]k_${prefix}${suffix}-`).test(key));

/** Reads the demo project's keys, and creates missing, revoked and outdated keys. Requires Redis and the topics. */
export async function loadDemoKeys(paths: StackPaths, env: Env): Promise<DemoKeys> {
  const settings: Env = { ...process.env, ...env };
  const keys: DemoKeys = readDemoKeys(paths) ?? { production: { ...NO_KEYS }, development: { ...NO_KEYS } };
  const pairs = ENVIRONMENTS.flatMap((environment) => KINDS.map((kind) => ({ environment, kind })));
  const prefix = settings.ACCESS_KEY_PREFIX ?? DEFAULT_KEY_PREFIX;
  const unusable = pairs.filter(({ environment, kind }) => isUnusable(keys[environment][kind], prefix));
  if (unusable.length === 0) return keys;
  await Promise.all(
    unusable.map(async ({ environment, kind }) => {
      keys[environment][kind] = await createKey(paths, { environment, kind, env });
    }),
  );
  writePrivateFile(topicsPath(paths), `${JSON.stringify({ prefix: settings.TOPIC_PREFIX ?? '' })}\n`);
  writePrivateFile(demoKeysPath(paths), `${JSON.stringify(keys, null, 2)}\n`);
  return keys;
}

type RedisServer = Pick<StackAddresses, 'redis' | 'redisCells'>;

/** False in a cluster, of which each cell has an epoch. */
const hasEpoch = async ({ redis: url, redisCells }: RedisServer): Promise<boolean> =>
  redisCells === undefined &&
  (await queryRedisOnce({ url }, async (client) => (await client.exists('identity:epoch')) === 1));

/**
 * Creates the epoch of the identity graph in a new deployment. Requires Redis, the topics and the tables.
 * @returns 'lost' if the log or the tables contain data that Redis has lost
 */
export async function initIdentityGraph(
  paths: StackPaths,
  { env, redis }: { env: Env; redis: RedisServer },
): Promise<'present' | 'lost'> {
  if (await hasEpoch(redis)) return 'present';
  try {
    await runOperator(paths, { args: ['identity', 'init'], env });
    return 'present';
  } catch (error) {
    const { cause } = error as Error;
    if (cause instanceof CommandError && cause.exitCode === EXIT.emptied) return 'lost';
    throw error;
  }
}

/** The chain of a stack, with its block maker and the demo project's objects. */
export interface ChainPart {
  /** Resolves when the demo contracts are deployed. */
  readonly contracts: Promise<unknown>;
  /** Links the demo project to the chain. @throws Error with the output of the failed command */
  link(link: Pick<DemoLink, 'env' | 'redis'>): Promise<DemoChain>;
  /** Stops creating blocks and saves the chain. The node itself is stopped with the stores. */
  close(): Promise<void>;
}

const BLOCK_MS = 1_000;
/** Minimum time between two reports of a persistent error. */
const REPORT_INTERVAL_MS = 60_000;

export function openChainPart(
  paths: StackPaths,
  options: Pick<StackOptions, 'chainProgram' | 'report'> & { port: number; start(spec: ProcessSpec): Promise<void> },
): ChainPart {
  const { port, chainProgram: program, start, report = () => {} } = options;
  const rpc = chainAddress(port);
  const path = chainStatePath(paths);
  let reportedAt = Number.NEGATIVE_INFINITY;
  const onFault = (error: unknown) => {
    // Reports are rate-limited, because the keeper already reports restarts of the node.
    if (performance.now() - reportedAt < REPORT_INTERVAL_MS) return;
    reportedAt = performance.now();
    report(`chain: ${error instanceof Error ? error.message : error}`);
  };
  const started = start(chainSpec(paths, port, program));
  const save = () => saveState({ rpc, path });
  let [blockMaker, isClosed]: [BlockMaker | null, boolean] = [null, false];
  const contracts = started.then(() => {
    if (!isClosed) blockMaker = openBlockMaker({ rpc, depth: FINAL_DEPTH, blockMs: BLOCK_MS, save, onFault });
    return deployDemo(rpc);
  });
  // No one awaits this promise if another component fails first.
  contracts.catch(() => {});
  return {
    contracts,
    link: async (link) => linkDemo(paths, { ...link, rpc, contracts: await contracts, report }),
    close: async () => {
      isClosed = true;
      await blockMaker?.close();
    },
  };
}

/** Content of `chain.json`. */
interface StoredLink {
  /** Hash of the first chain block, which identifies the chain. */
  readonly genesis: string;
  readonly signer: string;
}

type OperatorLine = { address?: string; name?: string; contractAddress?: string };

interface DemoLink {
  readonly rpc: string;
  readonly contracts: DemoAddresses;
  /** Stack settings for operator commands. */
  readonly env: Env;
  /** The Redis that contains the access records. */
  readonly redis: RedisServer;
  readonly report: (line: string) => void;
}

const DEVELOPMENT = ['--environment', 'development'];
const SIGNER_NAME = 'Demo minter';
const [{ name: CHAIN }] = DEMO_CHAINS;

const demoChainPath = (paths: StackPaths): string => join(paths.state, 'chain.json');

const CHAIN_RESTARTED =
  'the chain lost its state and started from its first block. The demo contracts were deployed again, minted tokens are lost, and stored activities belong to the old chain. Delete all data with `npm run reset`';

/** Runs an operator command that prints one JSON line per record. */
async function queryRecords(paths: StackPaths, env: Env, args: readonly string[]): Promise<readonly OperatorLine[]> {
  const output = await runOperator(paths, { args: [...args, '--json'], env });
  return output
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as OperatorLine);
}

const KEY_OPTIONS = ['--kind', 'signable', ...DEVELOPMENT];

async function createSigner(paths: StackPaths, env: Env): Promise<string> {
  const [created] = await queryRecords(paths, env, ['keys', 'create', ...KEY_OPTIONS, '--name', SIGNER_NAME]);
  if (created?.address === undefined) throw new Error('keys create printed no address');
  return created.address;
}

function linkCollection(paths: StackPaths, env: Env, collection: { address: string; name: string }): Promise<unknown> {
  const contract = ['--chain', CHAIN, '--contract', collection.address, '--name', collection.name];
  return queryRecords(paths, env, ['collections', 'link', ...DEVELOPMENT, ...contract]);
}

const toCollections = (contracts: DemoAddresses) => [
  { address: contracts.erc721, name: 'Demo heroes' },
  { address: contracts.erc1155, name: 'Demo items' },
];

/** Creates all objects in parallel for a new stack. @returns the signer, or null if an object already existed */
async function createAll(paths: StackPaths, env: Env, contracts: DemoAddresses): Promise<string | null> {
  const collections = toCollections(contracts).map((collection) => linkCollection(paths, env, collection));
  const [signer, ...linked] = await Promise.allSettled([createSigner(paths, env), ...collections]);
  const isLinked = linked.every(({ status }) => status === 'fulfilled');
  return isLinked && signer.status === 'fulfilled' ? signer.value : null;
}

/** Creates missing objects, for example when `chain.json` was lost. @returns the signer */
async function createMissing(paths: StackPaths, env: Env, contracts: DemoAddresses): Promise<string> {
  const [keys, linked] = await Promise.all([
    queryRecords(paths, env, ['keys', 'list', ...KEY_OPTIONS]),
    queryRecords(paths, env, ['collections', 'list']),
  ]);
  const found = keys.find(({ name }) => name === SIGNER_NAME)?.address;
  const isLinked = (address: string) => linked.some(({ contractAddress }) => contractAddress === address);
  const missing = toCollections(contracts).filter(({ address }) => !isLinked(address));
  const [signer] = await Promise.all([
    found ?? createSigner(paths, env),
    ...missing.map((collection) => linkCollection(paths, env, collection)),
  ]);
  return signer;
}

/** Returns true if the access records exist, so that no operator command is needed. */
async function areRecorded(server: RedisServer, signer: string, contracts: DemoAddresses): Promise<boolean> {
  const { redis: url, redisCells: cells = 0 } = server;
  const [signers, collections] = ['signable-keys', 'collections'].map((kind) => toFamily({ cells }, `access:${kind}`));
  const found = await queryRedisOnce({ url, cluster: cells > 0 }, (client) =>
    Promise.all([
      client.hexists(signers!, signer),
      ...toCollections(contracts).map(({ address }) => client.hexists(collections!, `${CHAIN}:${address}`)),
    ]),
  );
  return found.every((count) => count === 1);
}

/** Creates the signable key and both collections if missing. Requires Redis, the topics and the demo project. */
async function linkDemo(paths: StackPaths, link: DemoLink): Promise<DemoChain> {
  const { rpc, contracts, env, redis, report } = link;
  const stored = readOptionalFile(demoChainPath(paths), report) as StoredLink | null;
  const { hash: genesis } = await callRpc<{ hash: string }>(rpc, 'eth_getBlockByNumber', ['0x0', false]);
  if (stored !== null && stored.genesis !== genesis) report(CHAIN_RESTARTED);
  const isRecorded = stored !== null && (await areRecorded(redis, stored.signer, contracts));
  const created = stored === null ? await createAll(paths, env, contracts) : null;
  const signer = isRecorded ? stored.signer : (created ?? (await createMissing(paths, env, contracts)));
  await prepareSigner(rpc, signer, contracts);
  writePrivateFile(demoChainPath(paths), `${JSON.stringify({ genesis, signer } satisfies StoredLink, null, 2)}\n`);
  return { rpc, id: CHAIN_ID, contracts, signer };
}
