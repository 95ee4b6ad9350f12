import { resolve } from 'node:path';
import { Option } from '@commander-js/extra-typings';
import { isChainName } from '@playline/contracts';
import { type ClickHouseAccount, pauseOrThrow } from '@playline/stores';
import type { Addresses } from '../addresses.ts';
import { type CreateCommand, jsonCommand, numberFrom, UsageError, type Work, wholeNumberFrom } from '../command.ts';
import { createReadHistory } from '../replicate/history.ts';
import {
  type Copied,
  openClickHouseTarget,
  openFileTarget,
  openNoState,
  openStateFile,
  type ReplicateOptions,
  replicate,
} from '../replicate/replicate.ts';
import { createProgress, escapeControls } from '../terminal.ts';

export interface ReplicateContext {
  readonly clickhouse: () => ClickHouseAccount;
  readonly chainApi: Addresses['chainApi'];
  /** Resolves when the reader of standard output has accepted the text. */
  readonly writeOut: (text: string) => Promise<void>;
  readonly folder: string;
  readonly stop: AbortSignal;
}

const HELP = `
Copies up to the end of the history, and resumes from the state file. An interrupted copy loses nothing: a page is written
before its cursor is saved.

Targets:
  file        one line of JSON per version; for each id, the version with the latest updated_at applies
  clickhouse  a table of CLICKHOUSE_URL or of the local stack, created if missing; read it with FINAL
  stdout      lines as in a file; starts from the beginning unless --state is set; a page may be repeated after a kill

Exit codes: 0 copied to the end or stopped by Ctrl-C, 1 failed, 2 invalid arguments, 3 the chain API does not respond.`;

const TABLE = 'activities_replica';
const PAGE_MAX = 200;
/** The end of a history advances a second after a record, and every 64 s without records. */
const FOLLOW_MS = 1_000;

const TARGETS = ['file', 'clickhouse', 'stdout'] as const;

type Options = ReturnType<ReturnType<typeof replicateCommand>['opts']>;
type Job = ReturnType<typeof toJob>;

export const createReplicateCommand =
  (context: ReplicateContext): CreateCommand =>
  (terminal) =>
    replicateCommand().action((options) => copy(toJob(options, context), { context, terminal }));

const replicateCommand = () =>
  jsonCommand('replicate', 'copy the activity history of a chain over HTTP')
    .requiredOption('--chain <name>', 'name of the chain')
    .addOption(new Option('--to <target>', 'where the copy is written').choices(TARGETS).makeOptionMandatory())
    .option('--url <url>', 'address of the chain API, without /v1 (default: the local stack)')
    .option('--out <file>', 'output file for --to file (default: CHAIN.ndjson)')
    .option('--table <name>', `table for --to clickhouse (default: ${TABLE})`)
    .option('--state <file>', 'file with the position of the copy (default: CHAIN.TARGET.state.json, none for stdout)')
    .addOption(
      new Option('--page-size <number>', `activities per page, at most ${PAGE_MAX}`)
        .argParser(wholeNumberFrom(1, PAGE_MAX))
        .default(PAGE_MAX),
    )
    .option('--follow', 'poll each second for new activities, until Ctrl-C')
    .addOption(
      new Option('--patience-seconds <number>', 'seconds to retry a failing page')
        .argParser(numberFrom(0, 1e6))
        .default(300),
    )
    .addHelpText('after', HELP);

async function copy(job: Job, { context, terminal }: Work<ReplicateContext>): Promise<void> {
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
}

/** @throws UsageError for contradictory arguments, before stores are opened */
function toJob(options: Options, { folder, chainApi }: ReplicateContext) {
  const { chain, to, table = TABLE } = options;
  if (!isChainName(chain)) throw new UsageError('--chain: expected the name of a chain');
  if (options.out !== undefined && to !== 'file') throw new UsageError('--out: only with --to file');
  if (options.table !== undefined && to !== 'clickhouse') throw new UsageError('--table: only with --to clickhouse');
  if (!/^[A-Za-z_]\w{0,99}$/.test(table)) throw new UsageError('--table: expected letters, digits and _');
  const state = options.state ?? (to === 'stdout' ? null : `${chain}.${to}.state.json`);
  return {
    chain,
    to,
    table,
    out: resolve(folder, options.out ?? `${chain}.ndjson`),
    /** Null if no state is stored. */
    statePath: state === null ? null : resolve(folder, state),
    pageSize: options.pageSize,
    patienceMs: 1_000 * options.patienceSeconds,
    isFollowing: options.follow === true,
    isJson: options.json === true,
    // Last, so that errors in other options are reported first.
    url: findChainUrl(options.url, chain, chainApi),
  };
}

function toSides(
  job: Job,
  { context, terminal }: Work<ReplicateContext>,
): Pick<ReplicateOptions, 'readHistory' | 'openTarget' | 'openState' | 'waitAtEnd'> {
  const onWait = (why: string, ms: number) =>
    terminal.progress(`${why}; retrying in ${(ms / 1_000).toFixed(1)} seconds`);
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

/** Name in the state file. */
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

/** The given URL of the chain API, or that of the stack if it serves the chain. @throws UsageError */
export function findChainUrl(given: string | undefined, chain: string, chainApi: Addresses['chainApi']): string {
  if (given !== undefined) {
    if (/^https?:$/.test(URL.parse(given)?.protocol ?? '')) return given;
    throw new UsageError('--url: expected the address of the chain API');
  }
  const stack = chainApi();
  if (stack === null)
    throw new UsageError('--url: expected the address of the chain API, since the environment configures a deployment');
  const names = stack.chains.map(({ name }) => name);
  if (names.includes(chain)) return stack.url;
  throw new UsageError(`--chain: the local stack serves ${names.join(', ')}, not ${chain}`);
}
