import { randomInt } from 'node:crypto';
import type { ClickHouseAccount } from '@playline/stores';
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
} from '../command.ts';
import { projectOf, toEnvironmentId } from '../keys/words.ts';
import { createProgress } from '../progress.ts';
import { isClean } from '../simulate/differences.ts';
import { toJson, toLines } from '../simulate/report.ts';
import { type SimulationOptions, simulate } from '../simulate/simulation.ts';
import { readStack } from '../stack-file.ts';
import { runChainSimulation, type SimulateChainContext } from './simulate-chain.ts';
import { runMintSimulation, type SimulateMintContext } from './simulate-mint.ts';

export interface SimulateContext {
  /** HTTP_HEADER_PREFIX */
  readonly headerPrefix: string;
  /** Folder whose `.playline/stack.json` contains addresses and keys. */
  readonly folder: string;
  /** What a simulation of a chain works with. */
  readonly chain: Omit<SimulateChainContext, 'stop'>;
  /** What a simulation of mints works with. */
  readonly mint: Pick<SimulateMintContext, 'indexedChains' | 'createNode' | 'createAskNode' | 'clickhouse'>;
  /** The environment's ClickHouse with its TLS; otherwise that of the stack file. */
  readonly clickhouse?: ClickHouseAccount | undefined;
  /** Aborted when the user interrupts the command: what was sent is still reconciled. */
  readonly stop: AbortSignal;
}

const HELP = `usage: operator simulate [options]          (npm run simulate -- [options])
       operator simulate --chain [NAME] [options]
       operator simulate --mint [options]

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
const BOTH = {
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
/** A mistyped number cannot run for a week; sequence numbers have room for four billion. */
const BOUNDS = { players: 1_000_000, minutes: 24 * 60, messages: 100_000_000, rate: 100_000 };
const REACH_MAX_MS = 5_000;

export function createSimulateCommand(context: SimulateContext): Command {
  const run = async (args: readonly string[], terminal: Terminal): Promise<ExitCode> => {
    const { values } = parseOptions(withChainName(args), { ...BOTH, ...OF_CHAIN, ...OF_MINT, ...OF_GAME });
    refuseStrangers(values);
    const { chain, mint, ...own } = context;
    if (values.chain !== undefined) return runChainSimulation(values, { ...chain, stop: context.stop }, terminal);
    if (values.mint === true) return runMintSimulation(values, { ...own, ...mint, chainApi: chain.chainApi }, terminal);
    const options = toSimulationOptions(values, context);
    if (values.environment === 'production' && !(await consents(options, values, terminal))) return EXIT.failed;
    await reach(options);
    const result = await simulate({ ...options, stop: context.stop, onProgress: createProgress(terminal) });
    if (values.json === true) terminal.result(JSON.stringify(toJson(result)));
    else for (const line of toLines(result)) terminal.result(line);
    return isClean(result) ? EXIT.ok : EXIT.failed;
  };
  return {
    name: 'simulate',
    summary: 'play a game, a chain, or a game that mints, and prove that nothing was lost',
    help: HELP,
    run,
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
function refuseStrangers(values: Values): void {
  const given = (options: object) => Object.keys(options).find((name) => values[name] !== undefined);
  const ofMint = given(OF_MINT);
  if (values.chain !== undefined) {
    const stranger = given(OF_GAME) ?? ofMint;
    if (stranger === undefined) return;
    const instead = stranger === 'messages' ? '; say --activities' : '';
    throw new UsageError(`--${stranger}: not with --chain, which plays no game${instead}`);
  }
  const ofChain = given(OF_CHAIN);
  if (values.mint !== true) {
    if (ofChain !== undefined) throw new UsageError(`--${ofChain}: only with --chain`);
    if (ofMint !== undefined) throw new UsageError(`--${ofMint}: only with --mint`);
    return;
  }
  const { minutes: _, ...others } = OF_GAME;
  const stranger = given(others) ?? ofChain;
  if (stranger === undefined) return;
  throw new UsageError(`--${stranger}: not with --mint${stranger === 'messages' ? '; say --assets' : ''}`);
}

/** Asks before it writes to real players' data. */
async function consents(
  { environmentId }: SimulationOptionsGiven,
  values: Values,
  terminal: Terminal,
): Promise<boolean> {
  const what = `This posts made-up players into ${environmentId}, where they cannot be told from real ones.`;
  const isAllowed = await isMeant(what, values, terminal);
  if (!isAllowed) terminal.progress('nothing was sent');
  return isAllowed;
}

type SimulationOptionsGiven = Omit<SimulationOptions, 'stop' | 'onProgress'>;

function toSimulationOptions(values: Values, context: SimulateContext): SimulationOptionsGiven {
  const environment = choiceOf(values, 'environment', {
    choices: ['production', 'development'],
    fallback: 'development',
  });
  const endless = values.messages === undefined ? 5 : Number.POSITIVE_INFINITY;
  return {
    environmentId: toEnvironmentId(projectOf({ project: 'demo', ...values }), environment),
    keyHeader: `${context.headerPrefix}-publishable-key`,
    players: numberOf(values, 'players', { min: 1, max: BOUNDS.players, fallback: 200 }),
    seed: numberOf(values, 'seed', { min: 0, max: 2 ** 31 - 1, fallback: randomInt(2 ** 31) }),
    rate: numberOf(values, 'rate', { min: 0, max: BOUNDS.rate, fallback: 500 }),
    durationMaxMs: MINUTE_MS * numberOf(values, 'minutes', { min: 0.01, max: BOUNDS.minutes, fallback: endless }),
    messagesMax: numberOf(values, 'messages', { min: 1, max: BOUNDS.messages, fallback: Number.POSITIVE_INFINITY }),
    brokenShare: numberOf(values, 'broken', { min: 0, max: 0.9, fallback: 0.03 }),
    settleIdleMaxMs: 1000 * numberOf(values, 'settle-seconds', { min: 1, max: 3600, fallback: 60 }),
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
  const told: Partial<ClickHouseAccount> = context.clickhouse ?? stack.clickhouse ?? {};
  return {
    gateway: need(textOf(values, 'gateway') ?? stack.gateway, 'gateway address'),
    publishableKey: need(textOf(values, 'key') ?? keys?.publishable, 'publishable key'),
    secretKey: textOf(values, 'secret-key') ?? keys?.secret ?? null,
    clickhouse: {
      ...told,
      url: need(textOf(values, 'clickhouse-url') ?? told.url, 'ClickHouse address'),
      user: textOf(values, 'clickhouse-user') ?? told.user ?? 'default',
      password: textOf(values, 'clickhouse-password') ?? told.password ?? '',
      database: textOf(values, 'clickhouse-database') ?? told.database ?? 'playline',
    },
  };
}

/** @throws UnreachableError unless gateway and ClickHouse answer at all */
async function reach({ gateway, clickhouse }: Pick<SimulationOptions, 'gateway' | 'clickhouse'>): Promise<void> {
  for (const [name, address, ask] of [
    ['gateway', gateway, fetch],
    ['ClickHouse', clickhouse.url, clickhouse.fetch ?? fetch],
  ] as const) {
    try {
      await ask(address, { signal: AbortSignal.timeout(REACH_MAX_MS) });
    } catch {
      throw new UnreachableError(
        `the ${name} at ${address} does not answer: start the stack (npm run up; npm run doctor tells more)`,
      );
    }
  }
}
