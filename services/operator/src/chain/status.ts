import { type ChainNode, type IndexedChain, NodeFault } from '@playline/chain';
import { EXIT, type ExitCode, printResult } from '../command.ts';
import { type ChainJob, type ChainOptions, chainOf, nodesOf } from './chain-job.ts';
import {
  lastCompleteBlockOf,
  paceOf,
  RECENT_MS,
  type RecentProgress,
  readProgress,
  toPaceText,
} from './read-progress.ts';

/** A running indexer publishes progress three times per interval. */
const FRESH_MS = 60_000;

/** Shows the indexing progress of each chain. @returns `unreachable` if a chain has no responding node */
export async function showStatus(job: ChainJob, { chain, ...output }: Partial<ChainOptions>): Promise<ExitCode> {
  const { context, terminal } = job;
  const chains = chain === undefined ? context.chains() : [chainOf(job, chain)];
  const progress = await readProgress(context);
  // In parallel, so that an unresponsive node does not delay other chains.
  const states = await Promise.all(chains.map((each) => stateOf(job, each, progress.get(each.name) ?? null)));
  for (const state of states) printResult(terminal, output, state, toLine(state, context.wallClockMs()));
  if (chains.length === 0) terminal.result('no chains are configured');
  return states.every(({ reachable }) => reachable) ? EXIT.ok : EXIT.unreachable;
}

async function stateOf(job: ChainJob, chain: IndexedChain, progress: RecentProgress | null) {
  const nodes = await Promise.all(nodesOf(job, chain).map((node) => readNodeState(node, chain)));
  const reachable = nodes.filter(({ fault }) => fault === null);
  const furthest = reachable.toSorted((a, b) => (b.head ?? -1) - (a.head ?? -1))[0] ?? null;
  const indexed = progress === null ? null : lastCompleteBlockOf(progress.last);
  const { head = null, horizon = null } = furthest ?? {};
  const behind = horizon === null ? null : Math.max(0, horizon - (indexed ?? chain.start - 1));
  const changedAt = progress === null ? null : new Date(progress.last.changedAt).toISOString();
  // The pace is meaningful only if the chain is behind and its indexer is running.
  const isFresh = progress !== null && job.context.wallClockMs() < progress.last.changedAt + FRESH_MS;
  const samples = isFresh && (behind ?? 0) > 0 ? progress.samples : [];
  const { blocksPerSecond, remainingMs } = paceOf(samples, { to: horizon ?? 0, windowMs: RECENT_MS });
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

function toLine(state: Awaited<ReturnType<typeof stateOf>>, nowMs: number): string {
  const { chain, reachable, head, horizon, indexed, behind, changedAt, blocksPerSecond, remainingSeconds } = state;
  const orNone = (value: number | string | null) => value ?? 'none';
  const remainingMs = remainingSeconds === null ? null : remainingSeconds * 1000;
  const ends = reachable ? [`latest block ${orNone(head)}`, `final ${orNone(horizon)}`] : ['no node responds'];
  const parts = [
    ...ends,
    `indexed ${orNone(indexed)}`,
    behind === null ? '' : `${behind} behind`,
    toPaceText({ blocksPerSecond, remainingMs }, nowMs),
    changedAt === null ? '' : `last progress at ${changedAt}`,
  ];
  const text = parts.filter((part) => part !== '').join(', ');
  return `${chain}: ${text}; ${state.nodes.map((node) => toNodeText(node, head)).join(', ')}`;
}

type NodeState = Awaited<ReturnType<typeof stateOf>>['nodes'][number];

/** Formats the state of a node, such as `demo-chain/2 at block 90 (30 behind)`. */
function toNodeText({ name, head, fault }: NodeState, furthest: number | null): string {
  if (fault !== null) return `${name} unusable (${fault})`;
  const behind = (furthest ?? 0) - (head ?? 0);
  return `${name} at block ${head ?? 'none'}${behind > 0 ? ` (${behind} behind)` : ''}`;
}

/** Reads a node's latest and last final block, or why the node is unusable. Never returns the node's URL. */
async function readNodeState(node: ChainNode, { chainId, finality }: IndexedChain) {
  const { name } = node;
  try {
    const actual = await node.chainId();
    if (actual !== chainId)
      throw new NodeFault('other-chain', `it is a node of chain ${actual}, not of chain ${chainId}`);
    const head = (await node.block('latest'))?.number ?? null;
    const final = finality === 'finalized' ? ((await node.block('finalized'))?.number ?? null) : null;
    const horizon = finality === 'finalized' || head === null ? final : Math.max(0, head - finality);
    return { name, head, horizon, fault: null };
  } catch (fault) {
    if (!(fault instanceof NodeFault)) throw fault;
    return { name, head: null, horizon: null, fault: fault.message };
  }
}
