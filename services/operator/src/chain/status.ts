import type { IndexedChain } from '@playline/chain';
import { EXIT, type ExitCode, textOf } from '../command.ts';
import { type ChainJob, chainOf, nodesOf } from './chain-job.ts';
import { paceOf, toPaceText } from './pace.ts';
import { COURSE_MS, type IndexCourse, lastWholeBlockOf, readProgress } from './read-progress.ts';
import { askNodes } from './read-ranges.ts';

/** An indexer that works tells of it three times as often: of one that does not, nobody knows when it will be done. */
const FRESH_MS = 60_000;

/** Says how far each chain is indexed, and when what it lacks will be. */
export async function showStatus(job: ChainJob): Promise<ExitCode> {
  const { context, terminal, values } = job;
  const chains = textOf(values, 'chain') === undefined ? context.chains() : [chainOf(job)];
  const courses = await readProgress(context);
  for (const chain of chains) {
    const state = await stateOf(job, chain, courses.get(chain.name) ?? null);
    terminal.result(values.json === true ? JSON.stringify(state) : toLine(state, context.wallClockMs()));
  }
  if (chains.length === 0) terminal.result('no chain is indexed');
  return EXIT.ok;
}

async function stateOf(job: ChainJob, chain: IndexedChain, course: IndexCourse | null) {
  const { finality } = chain;
  const ends = await askNodes(nodesOf(job, chain), async (node) => {
    const head = (await node.block('latest'))?.number ?? null;
    const said = finality === 'finalized' ? ((await node.block('finalized'))?.number ?? null) : null;
    return { head, horizon: finality === 'finalized' || head === null ? said : Math.max(0, head - finality) };
  });
  const indexed = course === null ? null : lastWholeBlockOf(course.last);
  const { head = null, horizon = null } = ends ?? {};
  const behind = horizon === null ? null : Math.max(0, horizon - (indexed ?? chain.start - 1));
  const changedAt = course === null ? null : new Date(course.last.changedAt).toISOString();
  const { blocksPerSecond, remainingMs } = paceTo(horizon, { course, behind, nowMs: job.context.wallClockMs() });
  const remainingSeconds = remainingMs === null ? null : Math.ceil(remainingMs / 1000);
  return { chain: chain.name, head, horizon, indexed, behind, changedAt, blocksPerSecond, remainingSeconds };
}

/** What is told only of a chain that lacks something, and whose indexer works. */
function paceTo(
  horizon: number | null,
  { course, behind, nowMs }: { course: IndexCourse | null; behind: number | null; nowMs: number },
) {
  const isFresh = course !== null && nowMs < course.last.changedAt + FRESH_MS;
  const samples = isFresh && (behind ?? 0) > 0 ? course.samples : [];
  return paceOf(samples, { to: horizon ?? 0, windowMs: COURSE_MS });
}

function toLine(state: Awaited<ReturnType<typeof stateOf>>, nowMs: number): string {
  const { chain, head, horizon, indexed, behind, changedAt, blocksPerSecond, remainingSeconds } = state;
  const known = (value: number | string | null) => value ?? 'none';
  const remainingMs = remainingSeconds === null ? null : remainingSeconds * 1000;
  return [
    `${chain}: latest block ${known(head)}`,
    `final ${known(horizon)}`,
    `indexed ${known(indexed)}`,
    behind === null ? '' : `${behind} behind`,
    toPaceText({ blocksPerSecond, remainingMs }, nowMs),
    changedAt === null ? '' : `last told at ${changedAt}`,
  ]
    .filter((part) => part !== '')
    .join(', ');
}
