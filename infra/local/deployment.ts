// Runs the project's own commands for a stack: topics, tables, keys, the identity epoch, and the objects on its chain.
import { join } from 'node:path';
import { type BlockMaker, openBlockMaker } from '../chain/block-maker.ts';
import { CHAIN_ID } from '../chain/demo.ts';
import { admitSigner, type DemoAddresses, deployDemo } from '../chain/deploy-demo.ts';
import { callRpc } from '../chain/rpc.ts';
import { saveState } from '../chain/state-file.ts';
import { chainAddress, chainSpec, chainStatePath, DEMO_CHAINS, FINAL_DEPTH } from './chain.ts';
import { CommandError, runCommand } from './command.ts';
import { EXIT } from './command-table.mjs';
import type { ProcessSpec } from './keeper.ts';
import { logFileOf, type StackPaths } from './paths.ts';
import { readJsonFile, readOptionalFile, writePrivateFile } from './private-file.ts';
import { queryRedisOnce } from './redis.ts';
import { environmentWithoutStores } from './services.ts';
import type { DemoChain, KeyPair } from './stack-file.ts';
import type { StackOptions } from './stack-options.ts';

type Env = Record<string, string | undefined>;

/** @throws Error naming the command, with the last lines of its output */
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

/** Creates the topics and registers the schemas; repeatable. */
export async function deployKafka(paths: StackPaths, env: Env): Promise<void> {
  await runMain(paths, { main: 'infra/kafka/main.ts', env, log: 'deploy-kafka' });
}

/** Applies the SQL; repeatable. Needs the operator's account in `env`. */
export async function deployClickHouse(paths: StackPaths, env: Env): Promise<void> {
  await runMain(paths, { main: 'infra/clickhouse/main.ts', env, log: 'deploy-clickhouse' });
}

/** Runs a command of the operator. @returns its standard output @throws Error with the last lines of its output */
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
  // An interrupted set-up leaves a key whose text is lost, so it is replaced.
  const args = ['keys', 'create', '--environment', environment, '--kind', kind, '--replace', '--json'];
  const output = await runOperator(paths, { args, env });
  const { key } = JSON.parse(output.trim().split('\n').at(-1) ?? 'null') as { key?: unknown };
  if (typeof key !== 'string') throw new Error('keys create printed no key');
  return key;
}

export const demoKeysPath = (paths: StackPaths): string => join(paths.state, 'keys.json');

/** Null before the first start. */
export const readDemoKeys = (paths: StackPaths): DemoKeys | null =>
  readJsonFile(demoKeysPath(paths)) as DemoKeys | null;

/** The TOPIC_PREFIX that the data was made with. */
const topicsPath = (paths: StackPaths) => join(paths.state, 'topics.json');

/** @throws Error when the data of this stack belongs to topics of another TOPIC_PREFIX */
export function assertSameTopics(paths: StackPaths, env: Env): void {
  const made = readJsonFile(topicsPath(paths)) as { prefix: string } | null;
  const prefix = env.TOPIC_PREFIX ?? '';
  if (readDemoKeys(paths) === null || (made?.prefix ?? '') === prefix) return;
  throw new Error(
    `TOPIC_PREFIX is '${prefix}', but the data of this stack was made with '${made?.prefix ?? ''}': restore the setting, or remove the data with \`npm run reset\``,
  );
}

/** Whether a stored key was revoked ('') or has another prefix than new keys. */
const isUnusable = (key: string, prefix: string): boolean =>
  !['', '_test'].some((mark) => new RegExp(`^[ps]k_${prefix}${mark}-`).test(key));

/** The demo project's keys from `keys.json`. Creates missing, revoked and outdated ones. Needs Redis and the topics. */
export async function loadDemoKeys(paths: StackPaths, env: Env): Promise<DemoKeys> {
  const settings: Env = { ...process.env, ...env };
  const keys: DemoKeys = readDemoKeys(paths) ?? { production: { ...NO_KEYS }, development: { ...NO_KEYS } };
  const pairs = ENVIRONMENTS.flatMap((environment) => KINDS.map((kind) => ({ environment, kind })));
  const prefix = settings.ACCESS_KEY_PREFIX ?? DEFAULT_KEY_PREFIX;
  const wanted = pairs.filter(({ environment, kind }) => isUnusable(keys[environment][kind], prefix));
  if (wanted.length === 0) return keys;
  await Promise.all(
    wanted.map(async ({ environment, kind }) => {
      keys[environment][kind] = await createKey(paths, { environment, kind, env });
    }),
  );
  writePrivateFile(topicsPath(paths), `${JSON.stringify({ prefix: settings.TOPIC_PREFIX ?? '' })}\n`);
  writePrivateFile(demoKeysPath(paths), `${JSON.stringify(keys, null, 2)}\n`);
  return keys;
}

const hasEpoch = (url: string): Promise<boolean> =>
  queryRedisOnce({ url }, async (client) => (await client.exists('identity:epoch')) === 1);

/**
 * Creates the epoch of the identity graph in a new deployment. Needs Redis, the topics and the tables.
 * @returns 'lost' when log or tables have data that Redis has lost
 */
export async function openIdentities(
  paths: StackPaths,
  { env, redis }: { env: Env; redis: { url: string } },
): Promise<'present' | 'lost'> {
  if (await hasEpoch(redis.url)) return 'present';
  try {
    await runOperator(paths, { args: ['identity', 'init'], env });
    return 'present';
  } catch (error) {
    const { cause } = error as Error;
    if (cause instanceof CommandError && cause.exitCode === EXIT.emptied) return 'lost';
    throw error;
  }
}

/** The chain of a stack, its block maker and the demo project's objects on it. */
export interface ChainPart {
  /** Resolves when the demo contracts are deployed. */
  readonly contracts: Promise<unknown>;
  /** Links the demo project. @throws Error with the output of the failed command */
  link(link: Pick<DemoLink, 'env' | 'redisUrl'>): Promise<DemoChain>;
  /** Stops making blocks and saves the chain; the node itself is stopped with the stores. */
  close(): Promise<void>;
}

const BLOCK_MS = 1_000;
/** Least time between two reports of a lasting fault. */
const SILENCE_MS = 60_000;

export function openChainPart(
  paths: StackPaths,
  options: Pick<StackOptions, 'chainProgram' | 'report'> & { port: number; start(spec: ProcessSpec): Promise<void> },
): ChainPart {
  const { port, chainProgram: program, start, report = () => {} } = options;
  const rpc = chainAddress(port);
  const path = chainStatePath(paths);
  let reportedAt = Number.NEGATIVE_INFINITY;
  const onFault = (fault: unknown) => {
    // The keeper already reports that the node restarts.
    if (performance.now() - reportedAt < SILENCE_MS) return;
    reportedAt = performance.now();
    report(`chain: ${fault instanceof Error ? fault.message : fault}`);
  };
  const started = start(chainSpec(paths, port, program));
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

type OperatorLine = { address?: string; name?: string; contractAddress?: string };

interface DemoLink {
  readonly rpc: string;
  readonly contracts: DemoAddresses;
  /** Settings of the stack, for the operator's commands. */
  readonly env: Env;
  /** Redis with the access records. */
  readonly redisUrl: string;
  readonly report: (line: string) => void;
}

const DEVELOPMENT = ['--environment', 'development'];
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

const KEY = ['--kind', 'signable', ...DEVELOPMENT];

async function makeSigner(paths: StackPaths, env: Env): Promise<string> {
  const [made] = await queryRecords(paths, env, ['keys', 'create', ...KEY, '--name', SIGNER_NAME]);
  if (made?.address === undefined) throw new Error('keys create printed no address');
  return made.address;
}

function linkCollection(paths: StackPaths, env: Env, collection: { address: string; name: string }): Promise<unknown> {
  const contract = ['--chain', CHAIN, '--contract', collection.address, '--name', collection.name];
  return queryRecords(paths, env, ['collections', 'link', ...DEVELOPMENT, ...contract]);
}

const collectionsOf = (contracts: DemoAddresses) => [
  { address: contracts.erc721, name: 'Demo heroes' },
  { address: contracts.erc1155, name: 'Demo items' },
];

/** Creates everything in parallel for a new stack. @returns null when a part existed already */
async function makeAll(paths: StackPaths, env: Env, contracts: DemoAddresses): Promise<string | null> {
  const collections = collectionsOf(contracts).map((collection) => linkCollection(paths, env, collection));
  const [signer, ...linked] = await Promise.allSettled([makeSigner(paths, env), ...collections]);
  const isLinked = linked.every(({ status }) => status === 'fulfilled');
  return isLinked && signer.status === 'fulfilled' ? signer.value : null;
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
