import { resolve } from 'node:path';
import { Option } from '@commander-js/extra-typings';
import { isChainName } from '@playline/contracts';
import { type ClickHouseAccount, pauseOrThrow } from '@playline/stores';
import type { Addresses } from '../addresses.ts';
import { type CreateCommand, type Deps, jsonCommand, numberFrom, UsageError, wholeNumberFrom } from '../command.ts';
import { createReadHistory } from '../replicate/history.ts';
import {
  type Copied,
  openClickHouseTarget,
  openFileTarget,
  openStateFile,
  type ReplicateOptions,
  replicate,
} from '../replicate/replicate.ts';
import { createProgress, escapeControls } from '../terminal.ts';

export interface ReplicateContext {
  readonly clickhouse: () => ClickHouseAccount;
  readonly chainApi: Addresses['chainApi'];
  /** Resolves once the text has been written to standard output. */
  readonly writeOut: (text: string) => Promise<void>;
  readonly folder: string;
  readonly stop: AbortSignal;
}

const HELP = `
Copies all activities up to the end of the history. An interrupted copy resumes from the state file without losing
activities, because every page is written before its cursor is saved.

Targets:
  file        one version of an activity per line, as JSON; the version with the latest updated_at is current
  clickhouse  a table in CLICKHOUSE_URL or the local stack, created if missing; query the table with FINAL
  stdout      same format as file; starts at the beginning unless --state is set; a crash may repeat a page

Exit codes: 0 copied to the end or stopped with Ctrl-C, 1 failure, 2 invalid arguments, 3 chain API not responding.`;

const TABLE = 'activities_replica';
const PAGE_MAX = 200;
/** The history end advances one second after each record, and every 64 s without records. */
const FOLLOW_MS = 1_000;

const TARGETS = ['file', 'clickhouse', 'stdout'] as const;

type Options = ReturnType<ReturnType<typeof replicateCommand>['opts']>;
type Job = ReturnType<typeof toJob>;

export const createReplicateCommand =
  (context: ReplicateContext): CreateCommand =>
  (terminal) =>
    replicateCommand().action((options) => copy(toJob(options, context), { context, terminal }));

const replicateCommand = () =>
  jsonCommand('replicate', 'copy the activity history of a chain from the chain API')
    .requiredOption('--chain <name>', 'chain name')
    .addOption(new Option('--to <target>', 'target of the copy').choices(TARGETS).makeOptionMandatory())
    .option('--url <url>', 'chain API URL, without /v1 (default: the local stack)')
    .option('--out <file>', 'output file for --to file (default: CHAIN.ndjson)')
    .option('--table <name>', `table for --to clickhouse (default: ${TABLE})`)
    .option('--state <file>', 'state file (default: CHAIN.TARGET.state.json; none for stdout)')
    .addOption(
      new Option('--page-size <number>', `activities per page, up to ${PAGE_MAX}`)
        .argParser(wholeNumberFrom(1, PAGE_MAX))
        .default(PAGE_MAX),
    )
    .option('--follow', 'keep polling for new activities until stopped with Ctrl-C')
    .addOption(
      new Option('--patience-seconds <number>', 'how long to retry a failing page, in seconds')
        .argParser(numberFrom(0, 1e6))
        .default(300),
    )
    .addHelpText('after', HELP);

async function copy(job: Job, { context, terminal }: Deps<ReplicateContext>): Promise<void> {
  const startedAt = performance.now();
  const progress = createProgress(terminal);
  const seconds = () => (performance.now() - startedAt) / 1_000;
  const copied = await replicate({
    ...toReplicateOptions(job, { context, terminal }),
    stop: context.stop,
    onPage: (reached) => progress(toLine(reached, seconds())),
  });
  const line = job.isJson ? JSON.stringify({ ...copied, seconds: seconds() }) : toLine(copied, seconds());
  // Standard output contains the copy.
  if (job.to === 'stdout') terminal.progress(line);
  else terminal.result(line);
}

/** @throws UsageError for contradictory arguments, before stores are opened */
function toJob(options: Options, { folder, chainApi }: ReplicateContext) {
  const { chain, to, table = TABLE } = options;
  if (!isChainName(chain)) throw new UsageError('--chain: expected a chain name');
  if (options.out !== undefined && to !== 'file') throw new UsageError('--out requires --to file');
  if (options.table !== undefined && to !== 'clickhouse') throw new UsageError('--table requires --to clickhouse');
  if (!/^[A-Za-z_]\w{0,99}$/.test(table)) throw new UsageError('--table: expected letters, digits and _');
  const state = options.state ?? (to === 'stdout' ? null : `${chain}.${to}.state.json`);
  return {
    chain,
    to,
    table,
    out: resolve(folder, options.out ?? `${chain}.ndjson`),
    /** Null without a state file. */
    statePath: state === null ? null : resolve(folder, state),
    pageSize: options.pageSize,
    patienceMs: 1_000 * options.patienceSeconds,
    isFollowing: options.follow === true,
    isJson: options.json === true,
    // Checked last, so that errors in other options are reported first.
    url: findChainUrl(options.url, chain, chainApi),
  };
}

function toReplicateOptions(
  job: Job,
  { context, terminal }: Deps<ReplicateContext>,
): Pick<ReplicateOptions, 'readHistory' | 'openTarget' | 'openState' | 'waitAtEnd'> {
  const onWait = (reason: string, ms: number) =>
    terminal.progress(`${reason}; retrying in ${(ms / 1_000).toFixed(1)} s`);
  return {
    readHistory: createReadHistory({ ...job, onWait }),
    openState: async () => {
      if (job.statePath === null) return { saved: null, save: async () => {}, close: async () => {} };
      return openStateFile(job.statePath, { ...job, target: nameOfTarget(job, context) });
    },
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

/** The target name in the state file. */
function nameOfTarget({ to, out, table }: Job, { clickhouse }: ReplicateContext): string {
  if (to === 'stdout') return 'standard output';
  if (to === 'file') return out;
  const { url, database } = clickhouse();
  return `${table} of ${database} at ${new URL(url).host}`;
}

function toLine({ activities, pages, upTo }: Copied, seconds: number): string {
  const rate = Math.round(activities / Math.max(seconds, 0.001));
  return `${activities} activities in ${pages} pages, ${rate} per second${upTo === null ? '' : `, up to ${upTo}`}`;
}

/** Returns `url`, or the URL of the local chain API if it serves the chain. @throws UsageError */
export function findChainUrl(url: string | undefined, chain: string, chainApi: Addresses['chainApi']): string {
  if (url !== undefined) {
    if (/^https?:$/.test(URL.parse(url)?.protocol ?? '')) return url;
    throw new UsageError('--url: expected the URL of the chain API');
  }
  const stack = chainApi();
  if (stack === null)
    throw new UsageError(
      '--url: expected the URL of the chain API: the environment configures a deployment without one',
    );
  const names = stack.chains.map(({ name }) => name);
  if (names.includes(chain)) return stack.url;
  throw new UsageError(`--chain: the local stack serves ${names.join(', ')}, not ${chain}`);
}
