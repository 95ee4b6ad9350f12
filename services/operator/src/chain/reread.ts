/** Reads blocks from the chain again, to verify the activity history or to backfill missing activities. */
import { type ActivityRow, type BlockName, type ChainStore, toActivityJson } from '@playline/chain';
import type { ActivityRecord } from '@playline/contracts';
import { withStore } from '../await-store.ts';
import { EXIT, type ExitCode, printResult, type Terminal, UsageError } from '../command.ts';
import { type Importer, openImporter } from '../import/importer.ts';
import type { Line } from '../import/lines.ts';
import { ACTIVITIES } from '../import/subjects.ts';
import { createProgress } from '../terminal.ts';
import { type ChainJob, type ChainOptions, chainOf, nodesOf } from './chain-job.ts';
import { lastCompleteBlockOf, type PaceSample, paceOf, readProgress, toPaceText } from './read-progress.ts';
import { type ChainRange, readRanges } from './read-ranges.ts';

/** Time window over which the pace is measured. */
const WINDOW_MS = 60_000;

/** A range of indexed blocks to read again. */
type BlockRange = Awaited<ReturnType<typeof blocksOf>>;

interface BlockOptions extends ChainOptions {
  /** Defaults to the first block of the chain. */
  readonly from?: number | undefined;
  /** Defaults to the last indexed block. */
  readonly to?: number | undefined;
}

async function blocksOf(job: ChainJob, options: BlockOptions) {
  const chain = chainOf(job, options.chain);
  const { last } = (await readProgress(job.context)).get(chain.name) ?? {};
  const indexed = last === undefined ? null : lastCompleteBlockOf(last);
  if (last === undefined || indexed === null) throw new UsageError(`no blocks of ${chain.name} are indexed yet`);
  const { from = chain.start, to = indexed } = options;
  if (from > to) throw new UsageError('--from must not be greater than --to');
  if (to > indexed) throw new UsageError(`--to: only blocks up to ${indexed} are indexed yet`);
  const requiredBlocks: BlockName[] = [{ number: last.block, hash: `0x${last.hash.toString('hex')}` }];
  return { chain, from, to, requiredBlocks };
}

function createProgressReporter({ terminal, context }: ChainJob, { from, to }: BlockRange) {
  const progress = createProgress(terminal);
  const samples: PaceSample[] = [{ atMs: performance.now(), block: from - 1 }];
  return (block: number, status: string) => {
    samples.push({ atMs: performance.now(), block });
    while (samples.length > 2 && samples.at(-1)!.atMs - samples[1]!.atMs > WINDOW_MS) samples.shift();
    const done = Math.floor((100 * (block - from + 1)) / (to - from + 1));
    const pace = toPaceText(paceOf(samples, { to, windowMs: Number.POSITIVE_INFINITY }), context.wallClockMs());
    progress([`block ${block} of ${to} (${done} %): ${status}`, pace].filter((part) => part !== '').join('; '));
  };
}

export async function verify(job: ChainJob, options: BlockOptions): Promise<ExitCode> {
  const { context, terminal } = job;
  const blocks = await blocksOf(job, options);
  const { from, to, chain } = blocks;
  const compared: Comparison = { activities: 0, missing: 0, different: 0, findings: [] };
  const reportProgress = createProgressReporter(job, blocks);
  await withStore('ClickHouse', await context.openStore(), async (store) => {
    for await (const read of readRanges({ ...blocks, nodes: nodesOf(job, chain), stop: context.stop })) {
      await compareRange(store, read, compared);
      reportProgress(read.to, `${compared.activities} activities compared`);
    }
  });
  for (const finding of compared.findings) terminal.progress(finding);
  const { activities, missing, different } = compared;
  const line = `${activities} activities in blocks ${from} to ${to}: ${missing} are missing from the history, ${different} differ`;
  printResult(terminal, options, { from, to, activities, missing, different }, line);
  return compared.findings.length > 0 || context.stop.aborted ? EXIT.failed : EXIT.ok;
}

/** Publishes activities that are missing from the history or differ from the chain. */
export async function backfill(job: ChainJob, options: BlockOptions & { readonly writerGroup: string }) {
  const { context, terminal } = job;
  const blocks = await blocksOf(job, options);
  const { from, to, chain } = blocks;
  const { writerGroup } = options;
  const importer = await openImporter(ACTIVITIES, { ...context, writerGroup, onProgress: terminal.progress });
  const done = { activities: 0, published: 0, refused: 0 };
  const reportProgress = createProgressReporter(job, blocks);
  let reached = from - 1;
  try {
    for await (const read of readRanges({ ...blocks, nodes: nodesOf(job, chain), stop: context.stop })) {
      await publishMissing(importer, { read, chain: chain.name, stop: context.stop, terminal }, done);
      if (context.stop.aborted) break;
      reached = read.to;
      reportProgress(reached, `${done.activities} activities compared, ${done.published} published`);
    }
  } finally {
    await importer.close();
  }
  const line = `${done.activities} activities in blocks ${from} to ${reached}: ${done.published} published, ${done.refused} refused`;
  printResult(terminal, options, { from, to: reached, ...done }, line);
  if (reached < to) terminal.progress(`stopped early: resume with --from ${reached + 1} --to ${to}`);
  return done.refused > 0 || reached < to ? EXIT.failed : EXIT.ok;
}

async function publishMissing(
  importer: Importer<ActivityRecord, ActivityRow>,
  { read, chain, stop, terminal }: { read: ChainRange; chain: string; stop: AbortSignal; terminal: Terminal },
  done: { activities: number; published: number; refused: number },
): Promise<void> {
  const { records, to } = read;
  if (records.length === 0) return;
  const lines = records.map((record, index): Line => {
    return { number: index + 1, value: toPublicContent(ACTIVITIES.toRow(record)), fault: null };
  });
  const { published, refused } = await importer.import({
    chain,
    tail: await importer.readTail(),
    stop,
    onProgress: () => {},
    lines: async function* () {
      yield* lines;
    },
    onRefused: (number, faults) =>
      terminal.progress(`activity ${number} in the range up to block ${to}: ${faults.join('; ')}`),
  });
  done.activities += records.length;
  done.published += published;
  done.refused += refused;
}

interface Comparison {
  activities: number;
  missing: number;
  different: number;
  /** One sentence per finding, up to a maximum. */
  readonly findings: string[];
}

const FINDINGS_MAX = 100;
/** Maximum number of ids per query. */
const IDS_MAX = 500;

/** Returns the public content of an activity, without the update time. */
function toPublicContent(row: ActivityRow): Record<string, unknown> {
  const { updated_at: _, ...content } = toActivityJson(row, { id: '', name: row.chain });
  return { ...content, chain: row.chain };
}

const textOf = (row: ActivityRow) => JSON.stringify(toPublicContent(row));

function addFinding(compared: Comparison, finding: string): void {
  if (compared.findings.length < FINDINGS_MAX) compared.findings.push(finding);
}

/** Finds activities that are missing from the history or differ from the chain. @throws StoreFault */
async function compareRange(
  store: Pick<ChainStore, 'readActivities' | 'readToken'>,
  { records, summarised, unindexed }: ChainRange,
  compared: Comparison,
): Promise<void> {
  for (let from = 0; from < records.length; from += IDS_MAX)
    await compareBatch(store, records.slice(from, from + IDS_MAX), compared);
  for (const { block, log, contract, tokens, firstId, lastId } of summarised)
    addFinding(
      compared,
      `block ${block}, log ${log}: ${tokens} tokens of ${contract} (ids ${firstId} to ${lastId}) exceed the limit per ` +
        'contract and block, and have no separate activities in the history',
    );
  for (const [contract, logs] of Map.groupBy(unindexed, ({ address }) => address))
    addFinding(
      compared,
      `block ${logs[0]!.blockNumber}, log ${logs[0]!.logIndex}: ${contract} emits Transfer without indexed parameters ` +
        `(${logs.length} logs in this range): add it to legacyTokens of CHAIN_NODES, then run backfill`,
    );
}

async function compareBatch(
  store: Pick<ChainStore, 'readActivities' | 'readToken'>,
  records: readonly ActivityRecord[],
  compared: Comparison,
): Promise<void> {
  const rows = records.map(ACTIVITIES.toRow);
  const stored = await ACTIVITIES.readStored(store, rows);
  for (const row of rows) {
    compared.activities++;
    const { blockchainMetadata, type, id } = row;
    const name = `${type} ${id} (block ${blockchainMetadata?.blockNumber}, log ${blockchainMetadata?.logIndex})`;
    const storedRow = stored.get(id);
    if (storedRow === undefined) {
      compared.missing++;
      addFinding(compared, `${name} is not in the history`);
    } else if (textOf(storedRow) !== textOf(row)) {
      compared.different++;
      addFinding(compared, `${name} differs from the history`);
    }
  }
}
