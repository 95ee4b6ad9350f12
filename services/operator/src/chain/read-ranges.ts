import {
  type BlockName,
  type BlockRange,
  type ChainLog,
  type ChainNode,
  createReadActivities,
  type IndexedChain,
  NodeFault,
  type ReadBlocks,
  readRange,
  type Summary,
} from '@playline/chain';
import type { ActivityRecord } from '@playline/contracts';
import { UnreachableError } from '../command.ts';

/** A log that exceeds the budget of its block; its activities are not in the history. */
export interface SummarisedLog extends Summary {
  readonly block: number;
  readonly log: number;
}

export interface ChainRange {
  readonly to: number;
  readonly records: readonly ActivityRecord[];
  readonly summarised: readonly SummarisedLog[];
  /** Logs of contracts that are not known to be ERC-20 or ERC-721. */
  readonly unindexed: readonly ChainLog[];
}

export interface RangesOptions {
  readonly chain: IndexedChain;
  /** The preferred node first. */
  readonly nodes: readonly ChainNode[];
  /** Both inclusive. */
  readonly from: number;
  readonly to: number;
  /** Blocks that the chain must contain. */
  readonly holds: readonly BlockName[];
  readonly stop: AbortSignal;
}

/**
 * Reads blocks with the checks of the indexer: each range links to the previous one.
 * @throws UnreachableError when no node returns a valid response
 */
export async function* readRanges(options: RangesOptions): AsyncGenerator<ChainRange> {
  const { chain, to, stop } = options;
  const read = createReadActivities({ ...chain, chain: chain.name });
  let [from, size, after]: [number, number, BlockName | null] = [options.from, chain.rangeBlocks, null];
  while (from <= to && !stop.aborted) {
    const end = Math.min(from + size - 1, to);
    const range: BlockRange = { from, to: end, after, knownBlocks: options.holds, hasBlooms: chain.hasBlooms };
    const found: ReadBlocks | null = await requestFromNodes(options.nodes, (node) => readRange(node, range), size > 1);
    if (found === null) {
      size = Math.max(1, Math.floor(size / 2));
      continue;
    }
    const [records, summarised, unindexed]: [ActivityRecord[], SummarisedLog[], ChainLog[]] = [[], [], []];
    for (const { log, reading } of read(found)) {
      for (const record of reading.records) records.push(record);
      if (reading.unread === 'unindexed') unindexed.push(log);
      if (reading.summary !== null) summarised.push({ block: log.blockNumber, log: log.logIndex, ...reading.summary });
    }
    yield { to: end, records, summarised, unindexed };
    const { number, hash } = found.blocks.at(-1)!;
    [from, after] = [end + 1, { number, hash }];
  }
}

/**
 * Tries one node after another.
 * @returns null if a smaller request may succeed: a node refused the size, or timed out but is reachable
 * @throws UnreachableError when no node returns a valid response
 */
export async function requestFromNodes<T>(
  nodes: readonly ChainNode[],
  work: (node: ChainNode) => Promise<T>,
  mayHalve = false,
): Promise<T | null> {
  const faults: string[] = [];
  const late: ChainNode[] = [];
  for (const node of nodes)
    try {
      return await work(node);
    } catch (fault) {
      if (!(fault instanceof NodeFault)) throw fault;
      if (fault.kind === 'too-much' && mayHalve) return null;
      if (fault.kind === 'late' || fault.kind === 'unreachable') late.push(node);
      faults.push(`${node.name}: ${fault.message}`);
    }
  if (mayHalve && (await isAnyReachable(late))) return null;
  throw new UnreachableError(`no node of the chain returns a valid response (${faults.join('; ')})`);
}

/** A node that is down times out on every request. */
async function isAnyReachable(nodes: readonly ChainNode[]): Promise<boolean> {
  const probes = nodes.map((node) =>
    node.chainId().then(
      () => true,
      () => false,
    ),
  );
  return (await Promise.all(probes)).includes(true);
}
