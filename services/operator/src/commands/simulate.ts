import { randomInt } from 'node:crypto';
import type { ClickHouseAccount } from '../clickhouse-query.ts';
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
} from '../command.ts';
import { createProgress } from '../progress.ts';
import { isClean, toJson, toLines } from '../simulate/report.ts';
import { type SimulationOptions, simulate } from '../simulate/simulation.ts';
import { readStack } from '../stack-file.ts';
import { projectOf, toEnvironmentId } from './keys.ts';

export interface SimulateContext {
  /** HTTP_HEADER_PREFIX */
  readonly headerPrefix: string;
  /** Folder whose `.playline/stack.json` tells addresses and keys. */
  readonly folder: string;
  /** The environment's ClickHouse with its TLS; without one the stack file's. */
  readonly clickhouse?: ClickHouseAccount | undefined;
  /** Aborted when the person asks for the end: what was sent is reconciled all the same. */
  readonly stop: AbortSignal;
}

const HELP = `usage: operator simulate [options]          (npm run simulate -- [options])

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

Exit code: 0 all as expected, 1 a difference, 2 wrong options, 3 the stack does not answer.`;

const text = { type: 'string' } as const;
const OPTIONS = {
  players: text,
  minutes: text,
  messages: text,
  rate: text,
  broken: text,
  seed: text,
  environment: text,
  project: { type: 'string', default: 'demo' },
  'settle-seconds': text,
  json: { type: 'boolean', default: false },
  yes: { type: 'boolean', default: false },
  gateway: text,
  key: text,
  'secret-key': text,
  'clickhouse-url': text,
  'clickhouse-user': text,
  'clickhouse-password': text,
  'clickhouse-database': text,
} as const;

const MINUTE_MS = 60_000;
/** Bounds that keep a slip of the finger from running for a week; sequence numbers have room for four billion. */
const BOUNDS = { players: 1_000_000, minutes: 24 * 60, messages: 100_000_000, rate: 100_000 };
const REACH_MAX_MS = 5_000;

export function createSimulateCommand(context: SimulateContext): Command {
  const run = async (args: readonly string[], terminal: Terminal): Promise<ExitCode> => {
    const { values } = parseOptions(args, OPTIONS);
    const options = toSimulationOptions(values, context);
    if (values.environment === 'production' && !(await consents(options, values, terminal))) return EXIT.failed;
    await reach(options);
    const result = await simulate({ ...options, stop: context.stop, onProgress: createProgress(terminal) });
    if (values.json === true) terminal.result(JSON.stringify(toJson(result)));
    else for (const line of toLines(result)) terminal.result(line);
    return isClean(result) ? EXIT.ok : EXIT.failed;
  };
  return { name: 'simulate', summary: 'play the traffic of a game and prove that nothing was lost', help: HELP, run };
}

type Values = ReturnType<typeof parseOptions>['values'];

/** Asks before real players' data is written to. */
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
    environmentId: toEnvironmentId(projectOf(values), environment),
    keyHeader: `${context.headerPrefix}-publishable-key`,
    players: numberOf(values, 'players', { min: 1, max: BOUNDS.players, fallback: 200 }),
    seed: numberOf(values, 'seed', { min: 0, max: 2 ** 31 - 1, fallback: randomInt(2 ** 31) }),
    rate: numberOf(values, 'rate', { min: 0, max: BOUNDS.rate, fallback: 500 }),
    durationMaxMs: MINUTE_MS * numberOf(values, 'minutes', { min: 0.01, max: BOUNDS.minutes, fallback: endless }),
    messagesMax: numberOf(values, 'messages', { min: 1, max: BOUNDS.messages, fallback: Number.POSITIVE_INFINITY }),
    brokenShare: numberOf(values, 'broken', { min: 0, max: 0.9, fallback: 0.03 }),
    settleIdleMaxMs: 1000 * numberOf(values, 'settle-seconds', { min: 1, max: 3600, fallback: 60 }),
    // Last: a slip in the options is told before a stack that does not run.
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
