import { type ChainBlock, type ChainLog, type ChainNode, NodeFault } from '../node.ts';
import { keccak } from './abi-reader.ts';
import { CONSECUTIVE_TRANSFER } from './transfers.ts';

/** A block, by number and hash. */
export interface BlockName {
  readonly number: number;
  readonly hash: string;
}

/** A range of blocks to be read from one node. */
export interface BlockRange {
  readonly from: number;
  readonly to: number;
  /** The block before `from`; null when unknown. */
  readonly after: BlockName | null;
  /**
   * Blocks that must be on the node's chain. One shortly after the range must be linked to it by parent hashes; of one
   * far after it the node must return the same block. Otherwise a node that has stopped at a block that was orphaned
   * later could still return that block.
   */
  readonly holds: readonly BlockName[];
  /** The blocks of the range, if they were read already. Their links must have been checked. */
  readonly blocks?: readonly ChainBlock[];
  /** False for chains without bloom filters. Missing logs in answers of nodes cannot be detected then. */
  readonly hasBlooms: boolean;
}

export interface ReadBlocks {
  /** From `from` to `to`, each the child of the previous one. */
  readonly blocks: readonly ChainBlock[];
  /** All logs of the blocks, in order. */
  readonly logs: readonly ChainLog[];
  /** Epoch seconds, of the block before the first one; null when it is not needed for the logs of that one. */
  readonly parentTimestampS: number | null;
}

/** Up to so many blocks, logs are requested block by block, by hash. Then they cannot belong to another block. */
const BY_HASH_MAX = 16;
/** To read all blocks up to a known one that is further above would cost more than the range itself. */
const LINKED_MAX = 128;

/** A known block is not on the node's chain. */
export class ForkFault extends NodeFault {
  readonly block: BlockName;

  constructor(block: BlockName, message: string) {
    super('inconsistent', message);
    this.block = block;
  }
}

const inconsistent = (message: string) => new NodeFault('inconsistent', message);

/** @throws NodeFault unless the blocks are those from `from` to `to`, each the child of the previous one */
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

/** Faults after which the node may still answer the other question, for receipts. */
const REFUSES = new Set<NodeFault['kind']>(['too-much', 'late', 'unreachable']);

/**
 * Reads the logs of one block. A request for logs cannot be smaller, and some nodes refuse more than 10,000 logs. But
 * the receipts of the block's transactions have them too. They are checked like all logs.
 */
async function readLogsOf(node: ChainNode, hash: string, isAlone: boolean): Promise<readonly ChainLog[]> {
  try {
    return await node.logsOf(hash);
  } catch (refusal) {
    if (!isAlone || !(refusal instanceof NodeFault) || !REFUSES.has(refusal.kind)) throw refusal;
    return await node.logsByReceipts(hash).catch((fault: unknown) => {
      // When to ask again, and a wrong answer, matter more than the first fault.
      const isOther = !(fault instanceof NodeFault) || fault.kind === 'busy' || fault.kind === 'inconsistent';
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
    // Behind a load balancer another node may have answered, one that followed another fork.
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
  const end = behind.reduce((most, each) => Math.max(most, each), to);
  const blocks = range.blocks ?? (await node.blocks(from, end));
  checkLinks(blocks, { from, to: range.blocks === undefined ? end : to });
  checkHeld(blocks, range);
  const own = blocks.slice(0, to - from + 1);
  if (range.blocks === undefined) await checkFarHeld(node, own.at(-1)!, range);
  return own;
}

/**
 * Checks that the end of a range and the known blocks far above it are on one chain. Both are requested together: behind
 * a load balancer separate answers may come from nodes on different chains.
 */
async function checkFarHeld(node: ChainNode, last: ChainBlock, { holds }: BlockRange): Promise<void> {
  const far = holds.filter(({ number }) => number - last.number > LINKED_MAX);
  if (far.length === 0) return;
  const [again, ...found] = await node.blocksAt([last.number, ...far.map(({ number }) => number)]);
  for (const [index, name] of far.entries()) {
    const { hash } = found[index] ?? {};
    if (hash === undefined) throw new NodeFault('behind', `it does not return block ${name.number}, which is final`);
    if (hash !== name.hash) throw new ForkFault(name, `its block ${name.number} has another hash than the known one`);
  }
  if (again?.hash !== last.hash)
    throw inconsistent(`block ${last.number} is not on the chain of block ${far[0]!.number}`);
}

/** Reads the time of the block before the first one if that decides how many activities the first one may have. */
async function readParentTime(
  node: ChainNode,
  { number, parentHash }: ChainBlock,
  logs: readonly ChainLog[],
): Promise<number | null> {
  const isFirst = ({ blockNumber }: ChainLog) => blockNumber === number;
  const found = logs.find((log) => !isFirst(log) || log.topics[0] === CONSECUTIVE_TRANSFER);
  if (number === 0 || found === undefined || !isFirst(found)) return null;
  const parent = await node.block(number - 1);
  if (parent === null) throw new NodeFault('behind', `it does not return block ${number - 1}`);
  if (parent.hash !== parentHash) throw inconsistent(`block ${number} does not link to the block before it`);
  return parent.timestampS;
}

/**
 * Reads blocks and all their logs, and checks them against each other: the blocks link to the known block before them,
 * the known blocks above them are on the node's chain too, and the logs match the bloom filters of the blocks.
 * @throws ForkFault when a required block is not on the node's chain; NodeFault `too-much` when fewer blocks may work
 */
export async function readRange(node: ChainNode, range: BlockRange): Promise<ReadBlocks> {
  const blocks = await readBlocks(node, range);
  const logs = await readLogs(node, blocks, range.hasBlooms);
  checkLogs(blocks, logs, range.hasBlooms);
  return { blocks, logs, parentTimestampS: await readParentTime(node, blocks[0]!, logs) };
}

const BLOOM_BYTES = 256;
const BITS_MASK = BLOOM_BYTES * 8 - 1;
/** Size of the cache. The same contracts and topics recur, and hashing them is most of the work. */
const REMEMBERED_MAX = 50_000;

/** The three bits of an address or a topic. */
type Bits = readonly [number, number, number];

const remembered = new Map<string, Bits>();

function bitsOf(text: string): Bits {
  const known = remembered.get(text);
  if (known !== undefined) return known;
  const hash = keccak(Buffer.from(text.slice(2), 'hex'));
  const bits: Bits = [
    hash.readUInt16BE(0) & BITS_MASK,
    hash.readUInt16BE(2) & BITS_MASK,
    hash.readUInt16BE(4) & BITS_MASK,
  ];
  if (remembered.size >= REMEMBERED_MAX) remembered.delete(remembered.keys().next().value!);
  remembered.set(text, bits);
  return bits;
}

/** The bloom filter of a block with exactly these logs. */
export function bloomOf(logs: Iterable<{ readonly address: string; readonly topics: readonly string[] }>): Buffer {
  const bloom = Buffer.alloc(BLOOM_BYTES);
  const seen = new Set<string>();
  for (const { address, topics } of logs) for (const text of [address, ...topics]) seen.add(text);
  for (const text of seen) for (const bit of bitsOf(text)) bloom[BLOOM_BYTES - 1 - (bit >> 3)]! |= 1 << (bit & 7);
  return bloom;
}

/** Whether a block claims to have no logs. */
const isEmptyBloom = (bloom: Buffer): boolean => bloom.every((byte) => byte === 0);
