import { type ChainBlock, type ChainLog, type ChainNode, NodeFault } from '../node.ts';
import { bloomOf, isEmptyBloom } from './bloom.ts';

/** A block, by number and hash. */
export interface BlockName {
  readonly number: number;
  readonly hash: string;
}

/** A range of blocks to be read from one node. */
export interface BlockRange {
  readonly from: number;
  readonly to: number;
  /** The block before `from`, if it is known; else null. */
  readonly after: BlockName | null;
  /**
   * Blocks that must be on the node's chain. One shortly after the range is linked to it by its parents; otherwise a
   * node that lags could still return orphaned blocks.
   */
  readonly holds: readonly BlockName[];
  /** The blocks of the range where they are known already, linked to whatever they must be. */
  readonly blocks?: readonly ChainBlock[];
  /** False for chains whose blocks have no bloom: gaps in the answers of nodes cannot be detected then. */
  readonly hasBlooms: boolean;
}

export interface ReadBlocks {
  /** From `from` to `to`, each the child of the one before. */
  readonly blocks: readonly ChainBlock[];
  /** All that the blocks hold, in order. */
  readonly logs: readonly ChainLog[];
}

/** Of so few blocks logs are asked for one by one, by hash: then they cannot be those of another block. */
const BY_HASH_MAX = 16;
/** No node has an orphan that is so deep below what is final. */
const LINKED_MAX = 128;

/** The node's chain does not hold a block that is known. */
export class ForkFault extends NodeFault {
  readonly block: BlockName;

  constructor(block: BlockName, message: string) {
    super('inconsistent', message);
    this.block = block;
  }
}

const inconsistent = (message: string) => new NodeFault('inconsistent', message);

/** @throws NodeFault unless the blocks are those from `from` to `to`, each the child of the one before */
export function checkLinks(blocks: readonly ChainBlock[], { from, to }: Pick<BlockRange, 'from' | 'to'>): void {
  if (blocks.length < to - from + 1)
    throw new NodeFault('behind', `it does not return all blocks from ${from} to ${to}`);
  for (const [index, { number, parentHash }] of blocks.entries()) {
    if (number !== from + index) throw inconsistent(`asked for block ${from + index} it gave ${number}`);
    if (index > 0 && blocks[index - 1]!.hash !== parentHash)
      throw inconsistent(`block ${number} does not link to the block before it`);
  }
}

/** @throws NodeFault unless these are all the logs of these blocks, in order */
export function checkLogs(
  blocks: readonly ChainBlock[],
  logs: readonly ChainLog[],
  hasBlooms: BlockRange['hasBlooms'],
): void {
  let at = 0;
  for (const { number, hash, logsBloom } of blocks) {
    const own: ChainLog[] = [];
    for (; logs[at]?.blockNumber === number; at++) own.push(logs[at]!);
    for (const [index, log] of own.entries()) {
      if (log.blockHash !== hash) throw inconsistent(`a log of block ${number} has the hash of another block`);
      const isNext = hasBlooms ? log.logIndex === index : index === 0 || log.logIndex > own[index - 1]!.logIndex;
      if (!isNext) throw inconsistent(`logs of block ${number} are missing or out of order`);
    }
    if (hasBlooms && !bloomOf(own).equals(logsBloom))
      throw inconsistent(`logs of block ${number} do not match the bloom of the block`);
  }
  if (at < logs.length)
    throw inconsistent(`a log of block ${logs[at]!.blockNumber} is out of order, or was not asked for`);
}

/** That a node does not give a list says nothing of what it gives otherwise. */
const REFUSES = new Set<NodeFault['kind']>(['too-much', 'late', 'unreachable']);

/**
 * Of one block. Nobody can be asked for less: where a node refuses its logs, as some do with more than 10,000 of them, they
 * stand in the receipts of its transactions too. What comes so is checked as everything.
 */
async function readLogsOf(node: ChainNode, hash: string, isAlone: boolean): Promise<readonly ChainLog[]> {
  try {
    return await node.logsOf(hash);
  } catch (refusal) {
    if (!isAlone || !(refusal instanceof NodeFault) || !REFUSES.has(refusal.kind)) throw refusal;
    return await node.logsByReceipts(hash).catch((fault: unknown) => {
      // When it wants to be asked again matters more than why the first answer failed.
      const isOther = !(fault instanceof NodeFault) || fault.kind === 'busy';
      throw isOther ? fault : refusal;
    });
  }
}

async function readLogs(
  node: ChainNode,
  blocks: readonly ChainBlock[],
  hasBlooms: boolean,
): Promise<readonly ChainLog[]> {
  const asked = hasBlooms ? blocks.filter(({ logsBloom }) => !isEmptyBloom(logsBloom)) : blocks;
  if (asked.length > BY_HASH_MAX) {
    const [first, last] = [blocks[0]!, blocks.at(-1)!];
    const logs = await node.logsIn(first.number, last.number);
    // Behind a balancer another node may have answered, which has gone another way meanwhile.
    for (const { number, hash } of [first, last])
      if ((await node.block(number))?.hash !== hash)
        throw inconsistent(`block ${number} was replaced while its logs were read`);
    return logs;
  }
  const logs: ChainLog[] = [];
  for (const { hash } of asked) for (const log of await readLogsOf(node, hash, blocks.length === 1)) logs.push(log);
  return logs;
}

/** @throws ForkFault */
function checkHeld(blocks: readonly ChainBlock[], { from, after, holds }: BlockRange): void {
  if (after !== null && blocks[0]!.parentHash !== after.hash)
    throw new ForkFault(after, `its block ${from} does not link to block ${after.number}, which is indexed`);
  for (const name of holds) {
    const found = blocks[name.number - from];
    if (found !== undefined && found.hash !== name.hash)
      throw new ForkFault(name, `its block ${name.number} has another hash than the known one`);
  }
}

async function readBlocks(node: ChainNode, range: BlockRange): Promise<readonly ChainBlock[]> {
  const { from, to, holds } = range;
  const behind = holds.map(({ number }) => number).filter((number) => number > to && number - to <= LINKED_MAX);
  const end = Math.max(to, ...behind);
  const blocks = range.blocks ?? (await node.blocks(from, end));
  checkLinks(blocks, { from, to: range.blocks === undefined ? end : to });
  checkHeld(blocks, range);
  return blocks.slice(0, to - from + 1);
}

/**
 * Reads blocks and all their logs, and believes nothing that can be checked: the blocks link to the one that is known
 * before them, and the logs are those that the blocks say they have.
 * @throws ForkFault when the node's chain does not hold what it must; NodeFault `too-much` when fewer blocks may pass
 */
export async function readRange(node: ChainNode, range: BlockRange): Promise<ReadBlocks> {
  const blocks = await readBlocks(node, range);
  const logs = await readLogs(node, blocks, range.hasBlooms);
  checkLogs(blocks, logs, range.hasBlooms);
  return { blocks, logs };
}
