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

/** A log that exceeds the limit per contract and block; its activities are not in the history. */
export interface SummarisedLog extends Summary {
  readonly block: number;
  readonly log: number;
}

export interface ChainRange {
  readonly to: number;
  readonly records: readonly ActivityRecord[];
  readonly summarised: readonly SummarisedLog[];
  /** Transfer logs without indexed parameters, whose contracts may be ERC-20 or ERC-721. */
  readonly unindexed: readonly ChainLog[];
}

export interface RangesOptions {
  readonly chain: IndexedChain;
  /** In order of preference. */
  readonly nodes: readonly ChainNode[];
  /** First block; both bounds are inclusive. */
  readonly from: number;
  readonly to: number;
  /** Blocks that the node's chain must contain. */
  readonly requiredBlocks: readonly BlockName[];
  readonly stop: AbortSignal;
}

/**
 * Reads blocks, applying the same checks as the indexer: each range must continue the previous range.
 * @throws UnreachableError when no node returns a valid response
 */
export async function* readRanges(options: RangesOptions): AsyncGenerator<ChainRange> {
  const { chain, to, stop } = options;
  const read = createReadActivities({ ...chain, chain: chain.name });
  let [from, size, after]: [number, number, BlockName | null] = [options.from, chain.rangeBlocks, null];
  while (from <= to && !stop.aborted) {
    const end = Math.min(from + size - 1, to);
    const range: BlockRange = { from, to: end, after, knownBlocks: options.requiredBlocks, hasBlooms: chain.hasBlooms };
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
 * Tries the nodes in order.
 * @returns null if a smaller request may succeed, because a node refused the size or timed out but is reachable
 * @throws UnreachableError when no node returns a valid response
 */
export async function requestFromNodes<T>(
  nodes: readonly ChainNode[],
  work: (node: ChainNode) => Promise<T>,
  mayHalve = false,
): Promise<T | null> {
  const faults: string[] = [];
  const timedOut: ChainNode[] = [];
  for (const node of nodes)
    try {
      return await work(node);
    } catch (fault) {
      if (!(fault instanceof NodeFault)) throw fault;
      if (fault.kind === 'too-large' && mayHalve) return null;
      if (fault.kind === 'timeout' || fault.kind === 'unreachable') timedOut.push(node);
      faults.push(`${node.name}: ${fault.message}`);
    }
  if (mayHalve && (await isAnyReachable(timedOut))) return null;
  throw new UnreachableError(`no node of the chain returns a valid response (${faults.join('; ')})`);
}

/** Distinguishes nodes that are down from nodes that cannot complete a large request. */
async function isAnyReachable(nodes: readonly ChainNode[]): Promise<boolean> {
  const probes = nodes.map((node) =>
    node.chainId().then(
      () => true,
      () => false,
    ),
  );
  return (await Promise.all(probes)).includes(true);
}
