import { randomInt } from 'node:crypto';
import type { CallNode, ChainNode, IndexedChain } from '@playline/chain';
import { isChainName } from '@playline/contracts';
import type { ClickHouseAccount } from '@playline/stores';
import type { Addresses } from '../../services/operator/src/addresses.ts';
import { findChainUrl } from '../../services/operator/src/chain-url.ts';
import {
  type CreateCommand,
  command,
  EXIT,
  type ExitCode,
  endWith,
  isConfirmed,
  numberFrom,
  type Terminal,
  UnreachableError,
  UsageError,
  wholeNumberFrom,
} from '../../services/operator/src/command.ts';
import { type ImportSources, openImporter } from '../../services/operator/src/import/importer.ts';
import { ACTIVITIES, TOKENS } from '../../services/operator/src/import/subjects.ts';
import { projectOf, toEnvironmentId } from '../../services/operator/src/keys/subcommands.ts';
import { createProgress } from '../../services/operator/src/progress.ts';
import { readStack } from '../../services/operator/src/stack-file.ts';
import { type ChainSimulationOptions, toReport as reportChain, simulateChain } from './chain/simulation.ts';
import { toReport as reportGame, type SimulationOptions, simulate } from './game/simulation.ts';
import { toReport as reportMints, simulateMints } from './mint/simulation.ts';
import { createMinterRole, type MintSimulationOptions } from './mint/stage.ts';
import { printReport } from './report.ts';

export interface SimulateContext {
  /** HTTP_HEADER_PREFIX */
  readonly headerPrefix: string;
  /** Folder whose `.playline/stack.json` contains addresses and keys. */
  readonly folder: string;
  readonly chainApi: Addresses['chainApi'];
  readonly indexedChains: Addresses['indexedChains'];
  readonly clickhouse: Addresses['clickhouse'];
  /** Whether the environment names a ClickHouse, whose address and TLS then replace those of the stack file. */
  readonly hasOwnClickHouse: boolean;
  readonly imports: ImportSources;
  readonly createNode: (node: { name: string; url: string }) => ChainNode;
  /** Sends requests to the stack's node, including transactions. */
  readonly createAskNode: (node: { url: string }) => CallNode;
  /** Aborted when the user interrupts the command: what was sent is still reconciled. */
  readonly stop: AbortSignal;
}

const MINUTE_MS = 60_000;
/**
 * A mistyped number cannot run for a week. Sequence numbers count to four billion; the quota of a project is 200 mints a
 * minute after the first 2,000.
 */
const BOUNDS = {
  game: { players: 1_000_000, minutes: 24 * 60, messages: 100_000_000, rate: 100_000 },
  chain: { activities: 200_000, rate: 100_000 },
  mint: { assets: 2_000, minutes: 60, rate: 1_000 },
};
const ASSETS_MIN = 10;
const SEED_MAX = 2 ** 31 - 1;
const REACH_MAX_MS = 5_000;

/** The options of all simulations. Those that are `undefined` have a default of their own in each. */
interface Options {
  readonly rate?: number | undefined;
  readonly broken?: number | undefined;
  readonly seed?: number | undefined;
  readonly settleSeconds: number;
  readonly json?: boolean | undefined;
  readonly yes?: boolean | undefined;
  /** True without a name. */
  readonly chain?: string | true | undefined;
  readonly activities?: number | undefined;
  readonly url?: string | undefined;
  readonly mint?: boolean | undefined;
  readonly assets?: number | undefined;
  readonly players?: number | undefined;
  readonly minutes?: number | undefined;
  readonly messages?: number | undefined;
  readonly environment?: string | undefined;
  readonly project?: string | undefined;
  readonly gateway?: string | undefined;
  readonly key?: string | undefined;
  readonly secretKey?: string | undefined;
  readonly clickhouseUrl?: string | undefined;
  readonly clickhouseUser?: string | undefined;
  readonly clickhousePassword?: string | undefined;
  readonly clickhouseDatabase?: string | undefined;
}

const CLICKHOUSE_OPTIONS = ['clickhouse-url', 'clickhouse-user', 'clickhouse-password', 'clickhouse-database'] as const;
/** Options that only some simulations have. */
const OPTIONS_OF = {
  chain: ['activities', 'url'],
  mint: ['assets', 'minutes'],
  game: [
    ...['players', 'minutes', 'messages', 'environment', 'project', 'gateway', 'key', 'secretKey'],
    ...CLICKHOUSE_OPTIONS.map(toMember),
  ],
};

function toMember(flag: string): string {
  return flag.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

const toFlag = (member: string) => `--${member.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

const ABOUT = `
A game: posts its traffic over HTTP, then compares what was acknowledged with ClickHouse. A simulation in production asks
first.

With --chain: publishes the history of a chain as an import does, follows it over HTTP at the same time, then compares
what is served with its own model: forwards, backwards, under filters, and the tokens. Asks first where the deployment is
another one than the local stack.

With --mint: the demo project mints on the chain of the local stack. The signer has no MINTER_ROLE for a while. Then
requests, rows, chain and history are compared with a model.

Exit code: 0 all as expected, 1 a difference, 2 wrong options, 3 the stack does not answer.`;

export const createSimulateCommand =
  (context: SimulateContext): CreateCommand =>
  (terminal) => {
    const { game, chain, mint } = BOUNDS;
    const simulation = command('simulate', 'simulate a game, a chain, or a game that mints, and verify the result')
      .option('--chain [name]', 'simulate a chain; the name may be left out where the stack has one chain')
      .option('--mint', 'simulate a game that mints')
      .option(
        '--rate <number>',
        'messages or lines per second, 500 by default; assets, 10 by default; 0 is unlimited',
        numberFrom(0, game.rate),
      )
      .option('--broken <share>', 'invalid share, 0 to 0.9; 0.03 by default, 0.15 of assets', numberFrom(0, 0.9))
      .option('--seed <number>', 'repeats the traffic of another run', wholeNumberFrom(0, SEED_MAX))
      .option('--settle-seconds <number>', 'longest wait for a store in which nothing changes', numberFrom(1, 3600), 60)
      .option('--yes', 'without confirmation')
      .option('--json', 'print the result as one line of JSON')
      .option('--players <number>', 'players of a game, at least; 200 by default', wholeNumberFrom(1, game.players))
      .option('--minutes <number>', 'end of a game or of mints; 5 by default', numberFrom(0.01, game.minutes))
      .option('--messages <number>', 'end of a game, instead of --minutes', wholeNumberFrom(1, game.messages))
      .option('--environment <name>', 'production or development; development by default')
      .option('--project <id>', 'project of a game; demo by default')
      .option('--gateway <url>', 'gateway of another deployment')
      .option('--key <key>', 'its publishable key')
      .option('--secret-key <key>', 'its secret key')
      .option('--activities <number>', 'end of a chain; 10,000 by default', wholeNumberFrom(1, chain.activities))
      .option('--url <url>', 'chain API of another deployment, without /v1')
      .option(
        '--assets <number>',
        'end of mints, 10 to 2,000; 120 by default',
        wholeNumberFrom(ASSETS_MIN, mint.assets),
      )
      .addHelpText('after', ABOUT);
    for (const flag of CLICKHOUSE_OPTIONS) simulation.option(`--${flag} <text>`, 'instead of the setting of this name');
    return simulation.action(async (options: Options) => endWith(await run(options, context, terminal)));
  };

function run(options: Options, context: SimulateContext, terminal: Terminal): Promise<ExitCode> {
  refuseOtherOptions(options);
  if (options.chain !== undefined) return runChain(options, context, terminal);
  return options.mint === true ? runMint(options, context, terminal) : runGame(options, context, terminal);
}

/** @throws UsageError for an option of another simulation, which would be ignored without notice */
function refuseOtherOptions(options: Options): void {
  if (options.chain !== undefined && options.mint === true) throw new UsageError('--mint: not with --chain');
  const own = options.chain !== undefined ? 'chain' : options.mint === true ? 'mint' : 'game';
  const all = Object.values(OPTIONS_OF).flat();
  const given = Object.entries(options).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  const other = given.find((name) => all.includes(name) && !OPTIONS_OF[own].includes(name));
  if (other === undefined) return;
  if (own === 'game') throw new UsageError(`${toFlag(other)}: only with --${other === 'assets' ? 'mint' : 'chain'}`);
  const instead = other === 'messages' ? `; use --${own === 'chain' ? 'activities' : 'assets'}` : '';
  throw new UsageError(`${toFlag(other)}: not with --${own}${instead}`);
}

/** Options that every simulation has. @param defaults of this simulation @throws UsageError */
function toCommonOptions(options: Options, defaults: { rateMax: number; rate: number; broken: number }) {
  const {
    seed = randomInt(SEED_MAX),
    rate = defaults.rate,
    broken: brokenShare = defaults.broken,
    settleSeconds,
  } = options;
  if (rate > defaults.rateMax) throw new UsageError(`--rate: expected a number from 0 to ${defaults.rateMax}`);
  return { seed, rate, brokenShare, settleIdleMaxMs: 1000 * settleSeconds };
}

/** Prompts before made-up data is written where it cannot be removed. @param unchanged what did not happen then */
async function consents(effect: string, unchanged: string, work: { options: Options; terminal: Terminal }) {
  const isAllowed = await isConfirmed(effect, work.options, work.terminal);
  if (!isAllowed) work.terminal.progress(unchanged);
  return isAllowed;
}

async function runGame(given: Options, context: SimulateContext, terminal: Terminal): Promise<ExitCode> {
  const options = toGameOptions(given, context);
  if (given.environment === 'production') {
    const what = `This posts made-up players into ${options.environmentId}, where they cannot be told from real ones.`;
    if (!(await consents(what, 'nothing was sent', { options: given, terminal }))) return EXIT.failed;
  }
  await reach(options);
  const result = await simulate({ ...options, stop: context.stop, onProgress: createProgress(terminal) });
  return printReport(reportGame(result), given, terminal);
}

function toGameOptions(given: Options, context: SimulateContext): Omit<SimulationOptions, 'stop' | 'onProgress'> {
  const { environment = 'development', messages: messagesMax = Number.POSITIVE_INFINITY } = given;
  if (environment !== 'production' && environment !== 'development')
    throw new UsageError('--environment: expected production or development');
  const endless = given.messages === undefined ? 5 : Number.POSITIVE_INFINITY;
  return {
    environmentId: toEnvironmentId(projectOf({ project: given.project ?? 'demo' }), environment),
    keyHeader: `${context.headerPrefix}-publishable-key`,
    players: given.players ?? 200,
    ...toCommonOptions(given, { rateMax: BOUNDS.game.rate, rate: 500, broken: 0.03 }),
    durationMaxMs: MINUTE_MS * (given.minutes ?? endless),
    messagesMax,
    // Last, so that errors in the options are reported before a stack that does not run.
    ...toAddresses(given, context, environment),
  };
}

function toAddresses(given: Options, context: SimulateContext, environment: 'production' | 'development') {
  const stack = readStack(context.folder);
  const keys = stack.keys?.[environment];
  const need = (value: string | undefined, what: string): string => {
    if (value !== undefined) return value;
    throw new UnreachableError(`no ${what}: start the stack (npm run up), or name it by its option`);
  };
  const known: Partial<ClickHouseAccount> = context.hasOwnClickHouse ? context.clickhouse() : (stack.clickhouse ?? {});
  return {
    gateway: need(given.gateway ?? stack.gateway, 'gateway address'),
    publishableKey: need(given.key ?? keys?.publishable, 'publishable key'),
    secretKey: given.secretKey ?? keys?.secret ?? null,
    clickhouse: {
      ...known,
      url: need(given.clickhouseUrl ?? known.url, 'ClickHouse address'),
      user: given.clickhouseUser ?? known.user ?? 'default',
      password: given.clickhousePassword ?? known.password ?? '',
      database: given.clickhouseDatabase ?? known.database ?? 'playline',
    },
  };
}

/** @throws UnreachableError unless gateway and ClickHouse answer at all */
async function reach({ gateway, clickhouse }: Pick<SimulationOptions, 'gateway' | 'clickhouse'>): Promise<void> {
  for (const [name, address, request] of [
    ['gateway', gateway, fetch],
    ['ClickHouse', clickhouse.url, clickhouse.fetch ?? fetch],
  ] as const) {
    try {
      await request(address, { signal: AbortSignal.timeout(REACH_MAX_MS) });
    } catch {
      throw new UnreachableError(
        `the ${name} at ${address} does not answer: start the stack (npm run up; npm run doctor tells more)`,
      );
    }
  }
}

async function runChain(given: Options, context: SimulateContext, terminal: Terminal): Promise<ExitCode> {
  const options = {
    activitiesMax: given.activities ?? 10_000,
    ...toCommonOptions(given, { rateMax: BOUNDS.chain.rate, rate: 500, broken: 0.03 }),
    // Last, so that errors in other options are reported before a stack that does not run.
    ...toChain(given, context.chainApi),
  };
  // Activities cannot be removed from a history.
  if (context.chainApi() === null) {
    const { name } = options.chain;
    const what = `This publishes made-up activities into the history of ${name}, where they remain.`;
    if (!(await consents(what, 'nothing was published', { options: given, terminal }))) return EXIT.failed;
  }
  const way = { ...context.imports, writerGroup: 'activity-writer', onProgress: terminal.progress };
  const activities = await openImporter(ACTIVITIES, way);
  try {
    const tokens = await openImporter(TOKENS, way);
    try {
      const { stop } = context;
      const result = await simulateChain({
        ...options,
        activities,
        tokens,
        stop,
        onProgress: createProgress(terminal),
      });
      return printReport(reportChain(result), given, terminal);
    } finally {
      await tokens.close();
    }
  } finally {
    await activities.close();
  }
}

function toChain(given: Options, chainApi: Addresses['chainApi']): Pick<ChainSimulationOptions, 'url' | 'chain'> {
  const chains = chainApi()?.chains ?? [];
  const names = chains.map(({ name }) => name);
  const name = typeof given.chain === 'string' ? given.chain : names.length === 1 ? names[0] : undefined;
  if (name === undefined)
    throw new UsageError(
      `--chain: expected a name, ${names.length === 0 ? 'since no local stack is running' : `one of ${names.join(', ')}`}`,
    );
  if (!isChainName(name)) throw new UsageError('--chain: expected the name of a chain');
  const url = findChainUrl(given.url, name, chainApi);
  // The id of a chain is known only for the stack's interface.
  const id = given.url === undefined ? (chains.find((chain) => chain.name === name)?.id ?? null) : null;
  return { url, chain: { name, id } };
}

async function runMint(given: Options, context: SimulateContext, terminal: Terminal): Promise<ExitCode> {
  const { rate: rateMax, minutes: minutesMax } = BOUNDS.mint;
  const { minutes = 5 } = given;
  if (minutes > minutesMax) throw new UsageError(`--minutes: expected a number from 0.01 to ${minutesMax}`);
  const options = {
    assetsMax: given.assets ?? 120,
    ...toCommonOptions(given, { rateMax, rate: 10, broken: 0.15 }),
    durationMaxMs: MINUTE_MS * minutes,
    // Last, so that errors in the options are reported before a stack that does not run.
    ...toMintStack(context),
  };
  const log = (line: string) => terminal.progress(line);
  const result = await simulateMints({ ...options, stop: context.stop, onProgress: createProgress(terminal), log });
  return printReport(reportMints(result), given, terminal);
}

/** The chain of the stack and the demo project's contracts on it, the only ones where roles are granted and revoked. */
function toMintStack(context: SimulateContext) {
  const { chainApi, indexedChains, createNode, createAskNode, folder, headerPrefix } = context;
  const api = chainApi();
  if (api === null)
    throw new UsageError(
      '--mint: plays on the chain of a stack that runs here, and the environment names the stores of another deployment',
    );
  const { chain: demo, keys } = readStack(folder);
  const [chain]: readonly IndexedChain[] = indexedChains();
  const { contracts, signer, rpc } = demo ?? {};
  if (contracts === undefined || signer === undefined || rpc === undefined || chain === undefined || keys === undefined)
    throw new UnreachableError('no stack with a chain runs here: start it (npm run up, without --no-chain)');
  const { erc721, erc1155 } = contracts;
  return {
    url: api.url,
    chain,
    contracts,
    clickhouse: context.clickhouse(),
    nodes: chain.urls.map((url, index) => createNode({ name: `${chain.name}/${index + 1}`, url })),
    role: createMinterRole({ ask: createAskNode({ url: rpc }), signer, contracts: [erc721, erc1155] }),
    keyHeader: `${headerPrefix}-api-key`,
    secretKey: keys.development.secret,
    publishableKey: keys.development.publishable,
  } satisfies Partial<MintSimulationOptions>;
}
