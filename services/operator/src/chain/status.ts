import type { IndexedChain } from '@playline/chain';
import { EXIT, type ExitCode, textOf } from '../command.ts';
import { askEnds, type EndOfNode } from './ask-ends.ts';
import { type ChainJob, chainOf, nodesOf } from './chain-job.ts';
import { paceOf, toPaceText } from './pace.ts';
import { COURSE_MS, type IndexCourse, lastWholeBlockOf, readProgress } from './read-progress.ts';

/** A working indexer publishes progress three times as often; without it, the remaining time is unknown. */
const FRESH_MS = 60_000;

/**
 * Shows how far each chain is indexed, and the time that is left.
 * @returns `unreachable` when no node of a chain answers; every chain is shown all the same
 */
export async function showStatus(job: ChainJob): Promise<ExitCode> {
  const { context, terminal, values } = job;
  const chains = textOf(values, 'chain') === undefined ? context.chains() : [chainOf(job)];
  const courses = await readProgress(context);
  // In parallel, since a silent node should not delay the others.
  const states = await Promise.all(chains.map((chain) => stateOf(job, chain, courses.get(chain.name) ?? null)));
  for (const state of states)
    terminal.result(values.json === true ? JSON.stringify(state) : toLine(state, context.wallClockMs()));
  if (chains.length === 0) terminal.result('no chain is indexed');
  return states.every(({ reachable }) => reachable) ? EXIT.ok : EXIT.unreachable;
}

async function stateOf(job: ChainJob, chain: IndexedChain, course: IndexCourse | null) {
  const { nodes, furthest } = await askEnds(nodesOf(job, chain), chain);
  const indexed = course === null ? null : lastWholeBlockOf(course.last);
  const { head = null, horizon = null } = furthest ?? {};
  const behind = horizon === null ? null : Math.max(0, horizon - (indexed ?? chain.start - 1));
  const changedAt = course === null ? null : new Date(course.last.changedAt).toISOString();
  const { blocksPerSecond, remainingMs } = paceTo(horizon, { course, behind, nowMs: job.context.wallClockMs() });
  const remainingSeconds = remainingMs === null ? null : Math.ceil(remainingMs / 1000);
  return {
    chain: chain.name,
    reachable: furthest !== null,
    head,
    horizon,
    indexed,
    behind,
    changedAt,
    blocksPerSecond,
    remainingSeconds,
    nodes: nodes.map(({ name, head, fault }) => ({ name, head, fault })),
  };
}

/** Only for a chain that is behind and has a working indexer. */
function paceTo(
  horizon: number | null,
  { course, behind, nowMs }: { course: IndexCourse | null; behind: number | null; nowMs: number },
) {
  const isFresh = course !== null && nowMs < course.last.changedAt + FRESH_MS;
  const samples = isFresh && (behind ?? 0) > 0 ? course.samples : [];
  return paceOf(samples, { to: horizon ?? 0, windowMs: COURSE_MS });
}

function toLine(state: Awaited<ReturnType<typeof stateOf>>, nowMs: number): string {
  const { chain, reachable, head, horizon, indexed, behind, changedAt, blocksPerSecond, remainingSeconds } = state;
  const known = (value: number | string | null) => value ?? 'none';
  const remainingMs = remainingSeconds === null ? null : remainingSeconds * 1000;
  const ends = reachable ? [`latest block ${known(head)}`, `final ${known(horizon)}`] : ['no node answers'];
  const parts = [
    ...ends,
    `indexed ${known(indexed)}`,
    behind === null ? '' : `${behind} behind`,
    toPaceText({ blocksPerSecond, remainingMs }, nowMs),
    changedAt === null ? '' : `last told at ${changedAt}`,
  ];
  const words = parts.filter((part) => part !== '').join(', ');
  return `${chain}: ${words}; ${state.nodes.map((node) => toNodeWords(node, head)).join(', ')}`;
}

/** Such as `demo-chain/2 at block 90 (30 behind)`. */
function toNodeWords({ name, head, fault }: Omit<EndOfNode, 'horizon'>, furthest: number | null): string {
  if (fault !== null) return `${name} does not serve (${fault})`;
  const behind = (furthest ?? 0) - (head ?? 0);
  return `${name} at block ${head ?? 'none'}${behind > 0 ? ` (${behind} behind)` : ''}`;
}
