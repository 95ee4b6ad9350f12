import { type ChainNode, type IndexedChain, NodeFault } from '@playline/chain';
import { EXIT, type ExitCode } from '../command.ts';
import { type ChainJob, type ChainOptions, chainOf, nodesOf } from './chain-job.ts';
import { paceOf, toPaceText } from './pace.ts';
import { lastCompleteBlockOf, RECENT_MS, type RecentProgress, readProgress } from './read-progress.ts';

/** A working indexer publishes progress three times as often; without it, the remaining time is unknown. */
const FRESH_MS = 60_000;

/**
 * Shows how far each chain is indexed, and the time that is left.
 * @returns `unreachable` when no node of a chain answers; every chain is shown all the same
 */
export async function showStatus(job: ChainJob, { chain, json }: Partial<ChainOptions>): Promise<ExitCode> {
  const { context, terminal } = job;
  const chains = chain === undefined ? context.chains() : [chainOf(job, chain)];
  const courses = await readProgress(context);
  // In parallel, since a silent node should not delay the others.
  const states = await Promise.all(chains.map((each) => stateOf(job, each, courses.get(each.name) ?? null)));
  for (const state of states)
    terminal.result(json === true ? JSON.stringify(state) : toLine(state, context.wallClockMs()));
  if (chains.length === 0) terminal.result('no chain is indexed');
  return states.every(({ reachable }) => reachable) ? EXIT.ok : EXIT.unreachable;
}

async function stateOf(job: ChainJob, chain: IndexedChain, course: RecentProgress | null) {
  const { nodes, furthest } = await readEnds(nodesOf(job, chain), chain);
  const indexed = course === null ? null : lastCompleteBlockOf(course.last);
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
  { course, behind, nowMs }: { course: RecentProgress | null; behind: number | null; nowMs: number },
) {
  const isFresh = course !== null && nowMs < course.last.changedAt + FRESH_MS;
  const samples = isFresh && (behind ?? 0) > 0 ? course.samples : [];
  return paceOf(samples, { to: horizon ?? 0, windowMs: RECENT_MS });
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
  return `${chain}: ${words}; ${state.nodes.map((node) => toNodeText(node, head)).join(', ')}`;
}

/** Such as `demo-chain/2 at block 90 (30 behind)`. */
function toNodeText({ name, head, fault }: Omit<EndOfNode, 'horizon'>, furthest: number | null): string {
  if (fault !== null) return `${name} does not serve (${fault})`;
  const behind = (furthest ?? 0) - (head ?? 0);
  return `${name} at block ${head ?? 'none'}${behind > 0 ? ` (${behind} behind)` : ''}`;
}

/** The end of the chain, as one node reports it. */
interface EndOfNode {
  readonly name: string;
  /** Its latest block. */
  readonly head: number | null;
  /** The last final block; null while nothing is final. */
  readonly horizon: number | null;
  /** Why the node cannot be used; null when it can. Never contains its address. */
  readonly fault: string | null;
}

/** The end of the chain, as all its nodes report it. */
interface EndsOfChain {
  readonly nodes: readonly EndOfNode[];
  /** The answering node with the highest block; null when none answers. */
  readonly furthest: EndOfNode | null;
}

async function readEnd(node: ChainNode, { chainId, finality }: IndexedChain): Promise<EndOfNode> {
  const { name } = node;
  try {
    const given = await node.chainId();
    if (given !== chainId) throw new NodeFault('other-chain', `it is a node of chain ${given}, not of ${chainId}`);
    const head = (await node.block('latest'))?.number ?? null;
    const said = finality === 'finalized' ? ((await node.block('finalized'))?.number ?? null) : null;
    const horizon = finality === 'finalized' || head === null ? said : Math.max(0, head - finality);
    return { name, head, horizon, fault: null };
  } catch (fault) {
    if (!(fault instanceof NodeFault)) throw fault;
    return { name, head: null, horizon: null, fault: fault.message };
  }
}

/** Asks all nodes of a chain at once. One that does not answer is reported, and does not affect the others. */
async function readEnds(nodes: readonly ChainNode[], chain: IndexedChain): Promise<EndsOfChain> {
  const ends = await Promise.all(nodes.map((node) => readEnd(node, chain)));
  const answering = ends.filter(({ fault }) => fault === null);
  const furthest = answering.toSorted((one, other) => (other.head ?? -1) - (one.head ?? -1))[0] ?? null;
  return { nodes: ends, furthest };
}
