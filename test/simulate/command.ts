import { randomInt } from 'node:crypto';
import type { CallNode, ChainNode, IndexedChain } from '@playline/chain';
import { isChainName } from '@playline/contracts';
import type { ClickHouseAccount, StoreFetch } from '@playline/stores';
import { type Addresses, readStack } from '../../services/operator/src/addresses.ts';
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
import { findChainUrl } from '../../services/operator/src/commands/replicate.ts';
import { type ImportSources, openImporter } from '../../services/operator/src/import/importer.ts';
import { ACTIVITIES, TOKENS } from '../../services/operator/src/import/subjects.ts';
import { projectOf, toEnvironmentId } from '../../services/operator/src/keys/subcommands.ts';
import { createProgress } from '../../services/operator/src/terminal.ts';
import { simulateChain, toReport as toChainReport } from './chain/simulation.ts';
import { simulate, toReport as toGameReport } from './game/simulation.ts';
import { createMinterRole, simulateMints, toReport as toMintReport } from './mint/simulation.ts';
import { printReport } from './report.ts';

export interface SimulateContext {
  readonly headerPrefix: string;
  readonly folder: string;
  readonly chainApi: Addresses['chainApi'];
  readonly indexedChains: Addresses['indexedChains'];
  readonly clickhouse: Addresses['clickhouse'];
  readonly hasClickHouseUrl: boolean;
  readonly imports: ImportSources;
  readonly createNode: (node: { name: string; url: string }) => ChainNode;
  readonly createCallNode: (node: { url: string }) => CallNode;
  readonly stop: AbortSignal;
}

const MINUTE_MS = 60_000;
// Prevents a mistyped number from starting a run that takes a week.
const BOUNDS = {
  game: { players: 1_000_000, minutes: 24 * 60, messages: 100_000_000, rate: 100_000 },
  chain: { activities: 200_000, rate: 100_000 },
  mint: { assetsMin: 10, assets: 2_000, minutes: 60, rate: 1_000 },
};
const SEED_MAX = 2 ** 31 - 1;
const REACHABLE_MAX_MS = 5_000;

const CLICKHOUSE_OPTIONS = ['clickhouse-url', 'clickhouse-user', 'clickhouse-password', 'clickhouse-database'] as const;

const ABOUT = `
Without --chain or --mint: posts game traffic over HTTP, and compares acknowledged messages with ClickHouse.

With --chain: imports a generated chain history, follows it over HTTP, and compares it with a model: forwards,
backwards, with filters, and the tokens.

With --mint: mints assets for the demo project on the local stack's chain, partly without MINTER_ROLE, and compares
requests, rows, chain and history with a model.

Writing to production or to a chain in another deployment requires a confirmation or --yes.

Exit codes: 0 no differences, 1 differences found, 2 invalid options, 3 the stack does not respond.`;

function createOptions() {
  const { game, chain, mint } = BOUNDS;
  return command('simulate', 'simulate game traffic, a chain history or mint requests, and verify the result')
    .option('--chain [name]', 'simulate a chain history; the name is optional if the stack has one chain')
    .option('--mint', 'simulate mint requests')
    .option(
      '--rate <number>',
      'messages or lines per second (default 500), or assets per second (default 10); 0 is unlimited',
      numberFrom(0, game.rate),
    )
    .option('--broken <fraction>', 'fraction of invalid items, 0 to 0.9; default 0.03, assets 0.15', numberFrom(0, 0.9))
    .option('--seed <number>', 'seed that determines the traffic; repeats an earlier run', wholeNumberFrom(0, SEED_MAX))
    .option(
      '--settle-seconds <number>',
      'stop waiting for results after this many seconds without changes',
      numberFrom(1, 3600),
      60,
    )
    .option('--yes', 'skip the confirmation')
    .option('--json', 'print the result as one line of JSON')
    .option('--players <number>', 'minimum number of players; default 200', wholeNumberFrom(1, game.players))
    .option('--minutes <number>', 'duration in minutes, for a game or mints; default 5', numberFrom(0.01, game.minutes))
    .option(
      '--messages <number>',
      'number of messages in the game, instead of --minutes',
      wholeNumberFrom(1, game.messages),
    )
    .option('--environment <name>', 'production or development; default development')
    .option('--project <id>', 'project of the game; default demo')
    .option('--gateway <url>', 'gateway address of another deployment')
    .option('--key <key>', 'publishable key for that gateway')
    .option('--secret-key <key>', 'secret key for that gateway')
    .option('--clickhouse-url <text>', 'overrides CLICKHOUSE_URL')
    .option('--clickhouse-user <text>', 'overrides CLICKHOUSE_USER')
    .option('--clickhouse-password <text>', 'overrides CLICKHOUSE_PASSWORD')
    .option('--clickhouse-database <text>', 'overrides CLICKHOUSE_DATABASE')
    .option(
      '--activities <number>',
      'number of activities in the chain history; default 10,000',
      wholeNumberFrom(1, chain.activities),
    )
    .option('--url <url>', 'chain API address of another deployment, without /v1')
    .option(
      '--assets <number>',
      'number of assets to mint, 10 to 2,000; default 120',
      wholeNumberFrom(mint.assetsMin, mint.assets),
    )
    .addHelpText('after', ABOUT);
}

type Options = ReturnType<ReturnType<typeof createOptions>['opts']>;

const FLAGS_OF = {
  chain: ['activities', 'url'],
  mint: ['assets', 'minutes'],
  game: [
    ...['players', 'minutes', 'messages', 'environment', 'project', 'gateway', 'key', 'secret-key'],
    ...CLICKHOUSE_OPTIONS,
  ],
};

export const createSimulateCommand =
  (context: SimulateContext): CreateCommand =>
  (terminal) =>
    createOptions().action(async (options) => endWith(await run(options, context, terminal)));

function run(options: Options, context: SimulateContext, terminal: Terminal): Promise<ExitCode> {
  const kind = options.chain !== undefined ? 'chain' : options.mint === true ? 'mint' : 'game';
  rejectUnsupportedOptions(options, kind);
  if (kind === 'chain') return runChain(options, context, terminal);
  return kind === 'mint' ? runMint(options, context, terminal) : runGame(options, context, terminal);
}

/** @throws UsageError for an option that the simulation would ignore */
function rejectUnsupportedOptions(options: Options, kind: keyof typeof FLAGS_OF): void {
  if (options.chain !== undefined && options.mint === true) throw new UsageError('--mint: not with --chain');
  const given = Object.entries(options).flatMap(([name, value]) =>
    value === undefined ? [] : [name.replaceAll(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`)],
  );
  const all = Object.values(FLAGS_OF).flat();
  const unsupported = given.find((flag) => all.includes(flag) && !FLAGS_OF[kind].includes(flag));
  if (unsupported === undefined) return;
  if (kind === 'game')
    throw new UsageError(`--${unsupported}: only with --${unsupported === 'assets' ? 'mint' : 'chain'}`);
  const hint = unsupported === 'messages' ? `; use --${kind === 'chain' ? 'activities' : 'assets'}` : '';
  throw new UsageError(`--${unsupported}: not with --${kind}${hint}`);
}

function toCommonOptions(options: Options, defaults: { rateMax: number; rate: number; broken: number }) {
  const { seed = randomInt(SEED_MAX), rate = defaults.rate, broken = defaults.broken, settleSeconds } = options;
  if (rate > defaults.rateMax) throw new UsageError(`--rate: expected a number from 0 to ${defaults.rateMax}`);
  return { seed, rate, brokenFraction: broken, settleIdleMaxMs: 1000 * settleSeconds };
}

async function runGame(given: Options, context: SimulateContext, terminal: Terminal): Promise<ExitCode> {
  const { environment = 'development', messages: messagesMax = Number.POSITIVE_INFINITY } = given;
  if (environment !== 'production' && environment !== 'development')
    throw new UsageError('--environment: expected production or development');
  const options = {
    environmentId: toEnvironmentId(projectOf({ project: given.project ?? 'demo' }), environment),
    keyHeader: `${context.headerPrefix}-publishable-key`,
    players: given.players ?? 200,
    ...toCommonOptions(given, { rateMax: BOUNDS.game.rate, rate: 500, broken: 0.03 }),
    durationMaxMs: MINUTE_MS * (given.minutes ?? (given.messages === undefined ? 5 : Number.POSITIVE_INFINITY)),
    messagesMax,
    // Last, so that invalid options are reported before a missing stack.
    ...toAddresses(given, context, environment),
  };
  if (environment === 'production') {
    const effect = `This posts generated players to ${options.environmentId}, where they look like real players.`;
    if (!(await isConfirmed(effect, given, terminal))) {
      terminal.progress('nothing was sent');
      return EXIT.failed;
    }
  }
  await assertReachable('gateway', options.gateway, fetch);
  await assertReachable('ClickHouse', options.clickhouse.url, options.clickhouse.fetch ?? fetch);
  const result = await simulate({ ...options, stop: context.stop, onProgress: createProgress(terminal) });
  return printReport(toGameReport(result), given, terminal);
}

function toAddresses(given: Options, context: SimulateContext, environment: 'production' | 'development') {
  const stack = readStack(context.folder);
  const keys = stack.keys?.[environment];
  const assertGiven = (value: string | undefined, name: string): string => {
    if (value !== undefined) return value;
    throw new UnreachableError(`no ${name}: start the stack (npm run up), or pass it as an option`);
  };
  const known: Partial<ClickHouseAccount> = context.hasClickHouseUrl ? context.clickhouse() : (stack.clickhouse ?? {});
  return {
    gateway: assertGiven(given.gateway ?? stack.gateway, 'gateway address'),
    publishableKey: assertGiven(given.key ?? keys?.publishable, 'publishable key'),
    secretKey: given.secretKey ?? keys?.secret ?? null,
    clickhouse: {
      ...known,
      url: assertGiven(given.clickhouseUrl ?? known.url, 'ClickHouse address'),
      user: given.clickhouseUser ?? known.user ?? 'default',
      password: given.clickhousePassword ?? known.password ?? '',
      database: given.clickhouseDatabase ?? known.database ?? 'playline',
    },
  };
}

/** @throws UnreachableError if no response arrives */
async function assertReachable(name: string, address: string, request: StoreFetch): Promise<void> {
  try {
    await request(address, { signal: AbortSignal.timeout(REACHABLE_MAX_MS) });
  } catch {
    throw new UnreachableError(
      `the ${name} at ${address} does not respond: start the stack (npm run up), or run npm run doctor`,
    );
  }
}

async function runChain(given: Options, context: SimulateContext, terminal: Terminal): Promise<ExitCode> {
  const options = {
    activitiesMax: given.activities ?? 10_000,
    ...toCommonOptions(given, { rateMax: BOUNDS.chain.rate, rate: 500, broken: 0.03 }),
    // Last, so that invalid options are reported before a missing stack.
    ...toChain(given, context.chainApi),
    stop: context.stop,
    onProgress: createProgress(terminal),
  };
  if (context.chainApi() === null) {
    const effect = `This publishes generated activities into the history of ${options.chain.name}, where they remain.`;
    if (!(await isConfirmed(effect, given, terminal))) {
      terminal.progress('nothing was published');
      return EXIT.failed;
    }
  }
  const sources = { ...context.imports, writerGroup: 'activity-writer', onProgress: terminal.progress };
  const activities = await openImporter(ACTIVITIES, sources);
  try {
    const tokens = await openImporter(TOKENS, sources);
    try {
      return printReport(toChainReport(await simulateChain({ ...options, activities, tokens })), given, terminal);
    } finally {
      await tokens.close();
    }
  } finally {
    await activities.close();
  }
}

function toChain(given: Options, chainApi: Addresses['chainApi']) {
  const chains = chainApi()?.chains ?? [];
  const names = chains.map(({ name }) => name);
  const name = typeof given.chain === 'string' ? given.chain : names.length === 1 ? names[0] : undefined;
  if (name === undefined) {
    const hint = names.length === 0 ? 'because no local stack is running' : `one of ${names.join(', ')}`;
    throw new UsageError(`--chain: expected a name, ${hint}`);
  }
  if (!isChainName(name)) throw new UsageError('--chain: expected a chain name');
  const url = findChainUrl(given.url, name, chainApi);
  // Only the local stack's chain id is known.
  const id = given.url === undefined ? (chains.find((chain) => chain.name === name)?.id ?? null) : null;
  return { url, chain: { name, id } };
}

async function runMint(given: Options, context: SimulateContext, terminal: Terminal): Promise<ExitCode> {
  const { rate: rateMax, minutes: minutesMax } = BOUNDS.mint;
  const { minutes = 5 } = given;
  if (minutes > minutesMax) throw new UsageError(`--minutes: expected a number from 0.01 to ${minutesMax}`);
  const result = await simulateMints({
    assetsMax: given.assets ?? 120,
    ...toCommonOptions(given, { rateMax, rate: 10, broken: 0.15 }),
    durationMaxMs: MINUTE_MS * minutes,
    // Last, so that invalid options are reported before a missing stack.
    ...toMintStack(context),
    stop: context.stop,
    onProgress: createProgress(terminal),
    log: (line: string) => terminal.progress(line),
  });
  return printReport(toMintReport(result), given, terminal);
}

/** Returns the local stack's chain and demo contracts, the only contracts on which roles are changed. */
function toMintStack({ chainApi, indexedChains, createNode, createCallNode, ...context }: SimulateContext) {
  const api = chainApi();
  if (api === null)
    throw new UsageError(
      '--mint: requires the local stack, but the environment configures the stores of another deployment',
    );
  const { chain: demo, keys } = readStack(context.folder);
  const [chain]: readonly IndexedChain[] = indexedChains();
  const { contracts, signer, rpc } = demo ?? {};
  if (contracts === undefined || signer === undefined || rpc === undefined || chain === undefined || keys === undefined)
    throw new UnreachableError('no local stack with a chain is running: start one (npm run up, without --no-chain)');
  const { erc721, erc1155 } = contracts;
  return {
    url: api.url,
    chain,
    contracts,
    clickhouse: context.clickhouse(),
    nodes: chain.urls.map((url, index) => createNode({ name: `${chain.name}/${index + 1}`, url })),
    role: createMinterRole(createCallNode({ url: rpc }), signer, [erc721, erc1155]),
    keyHeader: `${context.headerPrefix}-api-key`,
    secretKey: keys.development.secret,
    publishableKey: keys.development.publishable,
  };
}
