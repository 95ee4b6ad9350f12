import { resolve } from 'node:path';
import { isChainName } from '@playline/contracts';
import { type ClickHouseAccount, pauseOrThrow } from '@playline/stores';
import type { Addresses } from '../addresses.ts';
import { findChainUrl } from '../chain-url.ts';
import {
  type Command,
  choiceOf,
  EXIT,
  type ExitCode,
  numberOf,
  parseOptions,
  type Terminal,
  textOf,
  UsageError,
  type Values,
} from '../command.ts';
import { createProgress } from '../progress.ts';
import { createReadHistory } from '../replicate/history.ts';
import {
  type Copied,
  openClickHouseTarget,
  openFileTarget,
  type ReplicateOptions,
  replicate,
} from '../replicate/replicate.ts';
import { openNoState, openStateFile } from '../replicate/state.ts';
import { escapeControls } from '../terminal.ts';

export interface ReplicateContext {
  readonly clickhouse: () => ClickHouseAccount;
  readonly chainApi: Addresses['chainApi'];
  /** Writes to standard output, and resolves when its reader has accepted the text. */
  readonly writeOut: (text: string) => Promise<void>;
  /** Base of relative paths. */
  readonly folder: string;
  /** Aborted when the user interrupts the command. */
  readonly stop: AbortSignal;
}

const HELP = `usage: operator replicate --chain NAME --to file|clickhouse|stdout [options]
                                          (npm run replicate -- --chain NAME …)

Copies the history of activities of a chain over HTTP, up to its end, and goes on where it was when it is run again.
Killed at any moment it loses nothing: a page is written before its cursor is noted in the state file.

  --url URL            address of the chain interface, without /v1; when absent that of the stack that runs here
  --to file            a line of JSON for each version as it came; of several about one id the latest updated_at holds
  --to clickhouse      a table of CLICKHOUSE_URL or of the stack; made where it is missing; read it with FINAL
  --to stdout          as file; without --state from the beginning each time, with it a page may come twice after a kill
  --out FILE           of --to file (CHAIN.ndjson)
  --table NAME         of --to clickhouse (activities_replica)
  --state FILE         how far it has come (CHAIN.TARGET.state.json; of stdout none)
  --page-size 200      activities a page, 1 to 200
  --follow             does not end at the end: asks each second for what is new, until Ctrl-C
  --patience-seconds 300  how long it waits for a page that does not come
  --json               the result as one JSON line

Exit code: 0 copied to the end, or ended by Ctrl-C; 1 it failed, 2 wrong words, 3 the interface does not answer.`;

const text = { type: 'string' } as const;
const flag = { type: 'boolean', default: false } as const;
const OPTIONS = {
  chain: text,
  url: text,
  to: text,
  out: text,
  table: text,
  state: text,
  'page-size': text,
  'patience-seconds': text,
  follow: flag,
  json: flag,
} as const;

const PAGE_MAX = 200;
/** How often the horizon of a chain is looked at. It moves a second after a record, and every 64 s at rest. */
const FOLLOW_MS = 1_000;

type Target = 'file' | 'clickhouse' | 'stdout';

interface Job {
  readonly chain: string;
  readonly url: string;
  readonly to: Target;
  readonly out: string;
  readonly table: string;
  /** Null: no state is kept. */
  readonly statePath: string | null;
  readonly pageSize: number;
  readonly patienceMs: number;
  readonly isFollowing: boolean;
  readonly isJson: boolean;
}

/** `replicate`: the reference implementation of a copy of the history. */
export function createReplicateCommand(context: ReplicateContext): Command {
  const run = async (args: readonly string[], terminal: Terminal): Promise<ExitCode> => {
    const job = toJob(parseOptions(args, OPTIONS).values, context);
    const startedAt = performance.now();
    const progress = createProgress(terminal);
    const seconds = () => (performance.now() - startedAt) / 1_000;
    const copied = await replicate({
      ...toSides(job, { context, terminal }),
      stop: context.stop,
      onPage: (reached) => progress(toLine(reached, seconds())),
    });
    const line = job.isJson ? JSON.stringify({ ...copied, seconds: seconds() }) : toLine(copied, seconds());
    // Standard output is the copy itself.
    if (job.to === 'stdout') terminal.progress(line);
    else terminal.result(line);
    return EXIT.ok;
  };
  return { name: 'replicate', summary: 'copy the history of a chain, and go on where it was', help: HELP, run };
}

/** @throws UsageError for arguments that contradict each other, before anything is opened */
function toJob(values: Values, { folder, chainApi }: ReplicateContext): Job {
  const chain = textOf(values, 'chain');
  if (chain === undefined || !isChainName(chain)) throw new UsageError('--chain: expected the name of a chain');
  const to = choiceOf<Target>(values, 'to', { choices: ['file', 'clickhouse', 'stdout'] });
  for (const [name, target] of [
    ['out', 'file'],
    ['table', 'clickhouse'],
  ] as const)
    if (values[name] !== undefined && to !== target) throw new UsageError(`--${name}: only with --to ${target}`);
  const table = textOf(values, 'table') ?? 'activities_replica';
  if (!/^[A-Za-z_]\w{0,99}$/.test(table)) throw new UsageError('--table: expected letters, digits and _');
  const state = textOf(values, 'state') ?? (to === 'stdout' ? null : `${chain}.${to}.state.json`);
  return {
    chain,
    to,
    table,
    out: resolve(folder, textOf(values, 'out') ?? `${chain}.ndjson`),
    statePath: state === null ? null : resolve(folder, state),
    pageSize: numberOf(values, 'page-size', { min: 1, max: PAGE_MAX, fallback: PAGE_MAX }),
    patienceMs: 1_000 * numberOf(values, 'patience-seconds', { min: 0, max: 1e6, fallback: 300 }),
    isFollowing: values.follow === true,
    isJson: values.json === true,
    // Last, so that errors in other options are reported before a stack that does not run.
    url: findChainUrl(textOf(values, 'url'), chain, chainApi),
  };
}

interface Surroundings {
  readonly context: ReplicateContext;
  readonly terminal: Terminal;
}

function toSides(
  job: Job,
  { context, terminal }: Surroundings,
): Pick<ReplicateOptions, 'readHistory' | 'openTarget' | 'openState' | 'waitAtEnd'> {
  const onWait = (why: string, ms: number) =>
    terminal.progress(`${why}; asking again in ${(ms / 1_000).toFixed(1)} seconds`);
  return {
    readHistory: createReadHistory({ ...job, onWait }),
    openState: () =>
      job.statePath === null
        ? openNoState()
        : openStateFile(job.statePath, { ...job, target: nameOfTarget(job, context) }),
    openTarget: async (mark) => {
      if (job.to === 'file') return openFileTarget(job.out, mark);
      if (job.to === 'clickhouse') return openClickHouseTarget(context.clickhouse(), job, mark);
      const write = async (activities: readonly unknown[]) => {
        await context.writeOut(activities.map((activity) => `${escapeControls(JSON.stringify(activity))}\n`).join(''));
        return 0;
      };
      return { write, close: async () => {} };
    },
    waitAtEnd: job.isFollowing ? (stop) => pauseOrThrow(FOLLOW_MS, stop) : null,
  };
}

/** The target's name in the state file. */
function nameOfTarget({ to, out, table }: Job, { clickhouse }: ReplicateContext): string {
  if (to === 'stdout') return 'standard output';
  if (to === 'file') return out;
  const { url, database } = clickhouse();
  return `${table} of ${database} at ${new URL(url).host}`;
}

function toLine({ activities, pages, upTo }: Copied, seconds: number): string {
  const rate = Math.round(activities / Math.max(seconds, 0.001));
  return `${activities} activities in ${pages} pages, ${rate} a second${upTo === null ? '' : `, up to ${upTo}`}`;
}
