import type { ActivityRow, BlockName, IndexedChain } from '@playline/chain';
import type { ActivityRecord } from '@playline/contracts';
import { withStore } from '../await-store.ts';
import { EXIT, type ExitCode, numberOf, type Terminal, textOf, UsageError } from '../command.ts';
import { type ImportWay, openImportWay } from '../import/import-way.ts';
import type { Line } from '../import/lines.ts';
import { ACTIVITIES } from '../import/subjects.ts';
import { createProgress } from '../progress.ts';
import { type ChainJob, chainOf, nodesOf } from './chain-job.ts';
import { type Compared, compareRange, toShownContent } from './compare.ts';
import { type PaceSample, paceOf, toPaceText } from './pace.ts';
import { lastWholeBlockOf, readProgress } from './read-progress.ts';
import { type ReadRangeOfChain, readRanges } from './read-ranges.ts';

const BLOCK_MAX = Number.MAX_SAFE_INTEGER;
/** The pace is measured over this time. */
const WINDOW_MS = 60_000;

/** Blocks that are read again: never more than are indexed. */
interface AskedBlocks {
  readonly chain: IndexedChain;
  readonly from: number;
  readonly to: number;
  readonly holds: readonly BlockName[];
}

async function blocksOf(job: ChainJob): Promise<AskedBlocks> {
  const { context, values } = job;
  const chain = chainOf(job);
  const { last } = (await readProgress(context)).get(chain.name) ?? {};
  const indexed = last === undefined ? null : lastWholeBlockOf(last);
  if (last === undefined || indexed === null) throw new UsageError(`nothing of ${chain.name} is indexed yet`);
  const block = (name: string, fallback: number) => numberOf(values, name, { min: 0, max: BLOCK_MAX, fallback });
  const [from, to] = [block('from', chain.start), block('to', indexed)];
  if (!Number.isInteger(from) || !Number.isInteger(to) || from > to)
    throw new UsageError('--from and --to: expected two blocks, the first not behind the second');
  if (to > indexed)
    throw new UsageError(`--to: block ${indexed} is the last one that is indexed; the indexer goes on there`);
  return { chain, from, to, holds: [{ number: last.block, hash: `0x${last.hash.toString('hex')}` }] };
}

/** Reports progress, pace and remaining time. */
function createTellHowFar({ terminal, context }: ChainJob, { from, to }: AskedBlocks) {
  const progress = createProgress(terminal);
  const samples: PaceSample[] = [{ atMs: performance.now(), block: from - 1 }];
  return (block: number, what: string) => {
    samples.push({ atMs: performance.now(), block });
    while (samples.length > 2 && samples.at(-1)!.atMs - samples[1]!.atMs > WINDOW_MS) samples.shift();
    const done = Math.floor((100 * (block - from + 1)) / (to - from + 1));
    const pace = toPaceText(paceOf(samples, { to, windowMs: Number.POSITIVE_INFINITY }), context.wallClockMs());
    progress([`block ${block} of ${to} (${done} %): ${what}`, pace].filter((part) => part !== '').join('; '));
  };
}

/** Reads blocks again and compares them with the history. */
export async function verify(job: ChainJob): Promise<ExitCode> {
  const { context, terminal, values } = job;
  const blocks = await blocksOf(job);
  const { from, to, chain } = blocks;
  const compared: Compared = { activities: 0, missing: 0, different: 0, findings: [] };
  const tellHowFar = createTellHowFar(job, blocks);
  await withStore('ClickHouse', await context.openStore(), async (store) => {
    for await (const read of readRanges({ ...blocks, nodes: nodesOf(job, chain), stop: context.stop })) {
      await compareRange(store, read, compared);
      tellHowFar(read.to, `${compared.activities} activities looked at`);
    }
  });
  for (const finding of compared.findings) terminal.progress(finding);
  const { activities, missing, different } = compared;
  const line = `${activities} activities of blocks ${from} to ${to}: ${missing} are not in the history, ${different} differ`;
  terminal.result(values.json === true ? JSON.stringify({ from, to, activities, missing, different }) : line);
  return compared.findings.length > 0 || context.stop.aborted ? EXIT.failed : EXIT.ok;
}

/** Results of a backfill. */
interface Backfilled {
  activities: number;
  published: number;
  refused: number;
}

/** Reads blocks again and publishes what the history lacks or has with other contents. */
export async function backfill(job: ChainJob): Promise<ExitCode> {
  const { context, terminal, values } = job;
  chainOf(job);
  if (textOf(values, 'from') === undefined || textOf(values, 'to') === undefined)
    throw new UsageError('--from and --to: which blocks?');
  const blocks = await blocksOf(job);
  const { from, to, chain } = blocks;
  const writerGroup = textOf(values, 'writer-group') ?? 'activity-writer';
  const way = await openImportWay(ACTIVITIES, { ...context, writerGroup, onProgress: terminal.progress });
  const done: Backfilled = { activities: 0, published: 0, refused: 0 };
  const tellHowFar = createTellHowFar(job, blocks);
  let reached = from - 1;
  try {
    for await (const read of readRanges({ ...blocks, nodes: nodesOf(job, chain), stop: context.stop })) {
      await publishMissing(way, { read, chain: chain.name, stop: context.stop, terminal }, done);
      if (context.stop.aborted) break;
      reached = read.to;
      tellHowFar(reached, `${done.activities} activities looked at, ${done.published} published`);
    }
  } finally {
    await way.close();
  }
  const line = `${done.activities} activities of blocks ${from} to ${reached}: ${done.published} published, ${done.refused} refused`;
  terminal.result(values.json === true ? JSON.stringify({ from, to: reached, ...done }) : line);
  if (reached < to) terminal.progress(`ended early: --from ${reached + 1} --to ${to} goes on`);
  return done.refused > 0 || reached < to ? EXIT.failed : EXIT.ok;
}

interface Piece {
  readonly read: ReadRangeOfChain;
  readonly chain: string;
  readonly stop: AbortSignal;
  readonly terminal: Terminal;
}

async function publishMissing(
  way: ImportWay<ActivityRecord, ActivityRow>,
  { read, chain, stop, terminal }: Piece,
  done: Backfilled,
): Promise<void> {
  const { records, to } = read;
  if (records.length === 0) return;
  const lines = records.map((record, index): Line => {
    return { number: index + 1, value: toShownContent(ACTIVITIES.toRow(record)), fault: null };
  });
  const { published, refused } = await way.import({
    chain,
    tail: await way.readTail(),
    stop,
    onProgress: () => {},
    lines: async function* () {
      yield* lines;
    },
    onRefused: (number, faults) =>
      terminal.progress(`activity ${number} of those to block ${to}: ${faults.join('; ')}`),
  });
  done.activities += records.length;
  done.published += published;
  done.refused += refused;
}
