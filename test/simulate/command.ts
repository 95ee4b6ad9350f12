import { randomInt } from 'node:crypto';
import type { AskNode, ChainNode, IndexedChain } from '@playline/chain';
import { isChainName } from '@playline/contracts';
import type { ClickHouseAccount } from '@playline/stores';
import type { Addresses } from '../../services/operator/src/addresses.ts';
import { findChainUrl } from '../../services/operator/src/chain-url.ts';
import {
  type Command,
  choiceOf,
  EXIT,
  type ExitCode,
  isMeant,
  numberOf,
  parseOptions,
  type Terminal,
  textOf,
  UnreachableError,
  UsageError,
  type Values,
} from '../../services/operator/src/command.ts';
import { type ImportSources, openImportWay } from '../../services/operator/src/import/import-way.ts';
import { ACTIVITIES, TOKENS } from '../../services/operator/src/import/subjects.ts';
import { projectOf, toEnvironmentId } from '../../services/operator/src/keys/words.ts';
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
  readonly createAskNode: (node: { url: string }) => AskNode;
  /** Aborted when the user interrupts the command: what was sent is still reconciled. */
  readonly stop: AbortSignal;
}

const HELP = `usage: npm run simulate -- [options]
       npm run simulate -- --chain [NAME] [options]
       npm run simulate -- --mint [options]

Posts the traffic of a game over HTTP, then compares what was acknowledged with ClickHouse.

  --players 200             people in the game, at least
  --minutes 5               ends after this time; not limited when --messages is given alone
  --messages N              ends after this many messages
  --rate 500                messages per second, whatever the answers take; 0 is as fast as possible
  --broken 0.03             share of the messages that is broken, 0 to 0.9
  --seed N                  repeats the traffic of another run
  --environment development or production, which asks first: nobody wants a simulation among real players
  --yes                     without asking
  --project demo
  --settle-seconds 60       patience with a store in which nothing changes any more
  --json                    the result as one JSON line
  --gateway URL --key PUBLISHABLE_KEY --secret-key KEY
  --clickhouse-url URL --clickhouse-user NAME --clickhouse-password TEXT --clickhouse-database NAME
                            instead of what CLICKHOUSE_URL and its kin, or .playline/stack.json, tell

With --chain it publishes the history of a chain as an import does, follows it over HTTP meanwhile, then compares what is
served with its own model: forwards, backwards, under filters, and the tokens. NAME may be left out where the stack
serves one chain. It takes --rate (lines per second), --broken, --seed, --settle-seconds, --json, --yes (for another
deployment than the stack, where it asks first) and

  --activities 10000        ends after this many activities; later versions and broken lines come beside them
  --url URL                 address of the chain interface, without /v1; when absent that of the stack that runs here

With --mint it has the demo project mint on the chain of the stack that runs here, takes MINTER_ROLE from its signer and
gives it back meanwhile, then compares requests, rows, chain and history with its own model. It takes --minutes, --rate
(assets per second, 10), --broken (assets that can never be minted, 0.15), --seed, --settle-seconds, --json, and

  --assets 120              ends after this many assets, at most 2000

Exit code: 0 all as expected, 1 a difference, 2 wrong options, 3 the stack does not answer.`;

const text = { type: 'string' } as const;
const OF_ALL = {
  rate: text,
  broken: text,
  seed: text,
  'settle-seconds': text,
  json: { type: 'boolean', default: false },
  yes: { type: 'boolean', default: false },
} as const;
const OF_CHAIN = { chain: text, activities: text, url: text } as const;
const OF_MINT = { mint: { type: 'boolean' }, assets: text } as const;
const OF_GAME = {
  players: text,
  minutes: text,
  messages: text,
  environment: text,
  project: text,
  gateway: text,
  key: text,
  'secret-key': text,
  'clickhouse-url': text,
  'clickhouse-user': text,
  'clickhouse-password': text,
  'clickhouse-database': text,
} as const;

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
const REACH_MAX_MS = 5_000;

export function createSimulateCommand(context: SimulateContext): Command {
  return {
    name: 'simulate',
    summary: 'play a game, a chain, or a game that mints, and prove that nothing was lost',
    help: HELP,
    run: async (args, terminal) => {
      const options = { ...OF_ALL, ...OF_CHAIN, ...OF_MINT, ...OF_GAME };
      const { values } = parseOptions(withChainName(args), options);
      refuseOtherOptions(values);
      if (values.chain !== undefined) return runChain(values, context, terminal);
      return values.mint === true ? runMint(values, context, terminal) : runGame(values, context, terminal);
    },
  };
}

/** `--chain` may have no value: then its name is empty. */
function withChainName(args: readonly string[]): string[] {
  return args.map((arg, index) => {
    const isAlone = arg === '--chain' && (args[index + 1] ?? '-').startsWith('-');
    return isAlone ? '--chain=' : arg;
  });
}

/** @throws UsageError for an option of another simulation, which would be ignored without notice */
function refuseOtherOptions(values: Values): void {
  const given = (options: object) => Object.keys(options).find((name) => values[name] !== undefined);
  const ofMint = given(OF_MINT);
  if (values.chain !== undefined) {
    const other = given(OF_GAME) ?? ofMint;
    if (other === undefined) return;
    const instead = other === 'messages' ? '; say --activities' : '';
    throw new UsageError(`--${other}: not with --chain, which plays no game${instead}`);
  }
  const ofChain = given(OF_CHAIN);
  if (values.mint !== true) {
    if (ofChain !== undefined) throw new UsageError(`--${ofChain}: only with --chain`);
    if (ofMint !== undefined) throw new UsageError(`--${ofMint}: only with --mint`);
    return;
  }
  const { minutes: _, ...others } = OF_GAME;
  const other = given(others) ?? ofChain;
  if (other === undefined) return;
  throw new UsageError(`--${other}: not with --mint${other === 'messages' ? '; say --assets' : ''}`);
}

/** Options that every simulation has. @param defaults of this simulation */
function toCommonOptions(values: Values, defaults: { rateMax: number; rate: number; broken: number }) {
  return {
    seed: numberOf(values, 'seed', { min: 0, max: 2 ** 31 - 1, fallback: randomInt(2 ** 31) }),
    rate: numberOf(values, 'rate', { min: 0, max: defaults.rateMax, fallback: defaults.rate }),
    brokenShare: numberOf(values, 'broken', { min: 0, max: 0.9, fallback: defaults.broken }),
    settleIdleMaxMs: 1000 * numberOf(values, 'settle-seconds', { min: 1, max: 3600, fallback: 60 }),
  };
}

/** Prompts before made-up data is written where it cannot be removed. @param unchanged what did not happen then */
async function consents(what: string, unchanged: string, options: { values: Values; terminal: Terminal }) {
  const isAllowed = await isMeant(what, options.values, options.terminal);
  if (!isAllowed) options.terminal.progress(unchanged);
  return isAllowed;
}

async function runGame(values: Values, context: SimulateContext, terminal: Terminal): Promise<ExitCode> {
  const options = toGameOptions(values, context);
  if (values.environment === 'production') {
    const what = `This posts made-up players into ${options.environmentId}, where they cannot be told from real ones.`;
    if (!(await consents(what, 'nothing was sent', { values, terminal }))) return EXIT.failed;
  }
  await reach(options);
  const result = await simulate({ ...options, stop: context.stop, onProgress: createProgress(terminal) });
  return printReport(reportGame(result), values, terminal);
}

function toGameOptions(values: Values, context: SimulateContext): Omit<SimulationOptions, 'stop' | 'onProgress'> {
  const { players, rate, minutes, messages } = BOUNDS.game;
  const environment = choiceOf(values, 'environment', {
    choices: ['production', 'development'],
    fallback: 'development',
  });
  const endless = values.messages === undefined ? 5 : Number.POSITIVE_INFINITY;
  return {
    environmentId: toEnvironmentId(projectOf({ project: 'demo', ...values }), environment),
    keyHeader: `${context.headerPrefix}-publishable-key`,
    players: numberOf(values, 'players', { min: 1, max: players, fallback: 200 }),
    ...toCommonOptions(values, { rateMax: rate, rate: 500, broken: 0.03 }),
    durationMaxMs: MINUTE_MS * numberOf(values, 'minutes', { min: 0.01, max: minutes, fallback: endless }),
    messagesMax: numberOf(values, 'messages', { min: 1, max: messages, fallback: Number.POSITIVE_INFINITY }),
    // Last, so that errors in the options are reported before a stack that does not run.
    ...toAddresses(values, context, environment),
  };
}

function toAddresses(values: Values, context: SimulateContext, environment: 'production' | 'development') {
  const stack = readStack(context.folder);
  const keys = stack.keys?.[environment];
  const need = (value: string | undefined, what: string): string => {
    if (value !== undefined) return value;
    throw new UnreachableError(`no ${what}: start the stack (npm run up), or name it by its option`);
  };
  const known: Partial<ClickHouseAccount> = context.hasOwnClickHouse ? context.clickhouse() : (stack.clickhouse ?? {});
  return {
    gateway: need(textOf(values, 'gateway') ?? stack.gateway, 'gateway address'),
    publishableKey: need(textOf(values, 'key') ?? keys?.publishable, 'publishable key'),
    secretKey: textOf(values, 'secret-key') ?? keys?.secret ?? null,
    clickhouse: {
      ...known,
      url: need(textOf(values, 'clickhouse-url') ?? known.url, 'ClickHouse address'),
      user: textOf(values, 'clickhouse-user') ?? known.user ?? 'default',
      password: textOf(values, 'clickhouse-password') ?? known.password ?? '',
      database: textOf(values, 'clickhouse-database') ?? known.database ?? 'playline',
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

async function runChain(values: Values, context: SimulateContext, terminal: Terminal): Promise<ExitCode> {
  const { activities: activitiesMax, rate: rateMax } = BOUNDS.chain;
  const options = {
    activitiesMax: numberOf(values, 'activities', { min: 1, max: activitiesMax, fallback: 10_000 }),
    ...toCommonOptions(values, { rateMax, rate: 500, broken: 0.03 }),
    // Last, so that errors in other options are reported before a stack that does not run.
    ...toChain(values, context.chainApi),
  };
  // Activities cannot be removed from a history.
  if (context.chainApi() === null) {
    const { name } = options.chain;
    const what = `This publishes made-up activities into the history of ${name}, where they stay for ever.`;
    if (!(await consents(what, 'nothing was published', { values, terminal }))) return EXIT.failed;
  }
  const way = { ...context.imports, writerGroup: 'activity-writer', onProgress: terminal.progress };
  const activities = await openImportWay(ACTIVITIES, way);
  try {
    const tokens = await openImportWay(TOKENS, way);
    try {
      const { stop } = context;
      const result = await simulateChain({
        ...options,
        activities,
        tokens,
        stop,
        onProgress: createProgress(terminal),
      });
      return printReport(reportChain(result), values, terminal);
    } finally {
      await tokens.close();
    }
  } finally {
    await activities.close();
  }
}

function toChain(values: Values, chainApi: Addresses['chainApi']): Pick<ChainSimulationOptions, 'url' | 'chain'> {
  const chains = chainApi()?.chains ?? [];
  const names = chains.map(({ name }) => name);
  const name = textOf(values, 'chain') ?? (names.length === 1 ? names[0] : undefined);
  if (name === undefined)
    throw new UsageError(
      `--chain: which one? ${names.length === 0 ? 'Nobody tells what is served' : names.join(', ')}`,
    );
  if (!isChainName(name)) throw new UsageError('--chain: expected the name of a chain');
  const given = textOf(values, 'url');
  const url = findChainUrl(given, name, chainApi);
  // The id of a chain is known only for the stack's interface.
  const id = given === undefined ? (chains.find((chain) => chain.name === name)?.id ?? null) : null;
  return { url, chain: { name, id } };
}

async function runMint(values: Values, context: SimulateContext, terminal: Terminal): Promise<ExitCode> {
  const { assets, rate: rateMax, minutes } = BOUNDS.mint;
  const options = {
    assetsMax: Math.round(numberOf(values, 'assets', { min: 10, max: assets, fallback: 120 })),
    ...toCommonOptions(values, { rateMax, rate: 10, broken: 0.15 }),
    durationMaxMs: MINUTE_MS * numberOf(values, 'minutes', { min: 0.01, max: minutes, fallback: 5 }),
    // Last, so that errors in the options are reported before a stack that does not run.
    ...toMintStack(context),
  };
  const log = (line: string) => terminal.progress(line);
  const result = await simulateMints({ ...options, stop: context.stop, onProgress: createProgress(terminal), log });
  return printReport(reportMints(result), values, terminal);
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
