import { type ChainBlock, type ChainLog, type ChainNode, NodeFault } from '../node.ts';
import { keccak } from './abi-reader.ts';
import { CONSECUTIVE_TRANSFER } from './transfers.ts';

export interface BlockName {
  readonly number: number;
  readonly hash: string;
}

export interface BlockRange {
  readonly from: number;
  readonly to: number;
  /** The block before `from`, or null if unknown. */
  readonly after: BlockName | null;
  /** Blocks that must be on the node's chain. They reveal an orphaned branch. */
  readonly knownBlocks: readonly BlockName[];
  /** The range's blocks, if they were already read and their links checked. */
  readonly blocks?: readonly ChainBlock[];
  /** If false, missing logs go undetected. */
  readonly hasBlooms: boolean;
}

export interface ReadBlocks {
  readonly blocks: readonly ChainBlock[];
  readonly logs: readonly ChainLog[];
  /** The time of the first block's parent, or null if it is not needed. */
  readonly parentTimestampS: number | null;
}

/** For up to this many blocks, logs are requested by block hash. */
const BY_HASH_MAX = 16;
/** Checking more links would cost more than reading the range. */
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

/** @throws NodeFault unless the blocks are exactly `from` to `to` and each links to the previous one */
export function checkLinks(blocks: readonly ChainBlock[], { from, to }: Pick<BlockRange, 'from' | 'to'>): void {
  if (blocks.length < to - from + 1)
    throw new NodeFault('behind', `the node does not return all blocks from ${from} to ${to}`);
  for (const [index, { number, parentHash }] of blocks.entries()) {
    if (number !== from + index) throw inconsistent(`the node returned block ${number} instead of ${from + index}`);
    if (index > 0 && blocks[index - 1]!.hash !== parentHash)
      throw inconsistent(`block ${number} does not link to the previous block`);
  }
}

/** @throws NodeFault unless the logs are complete and in order */
export function checkLogs(
  blocks: readonly ChainBlock[],
  logs: readonly ChainLog[],
  hasBlooms: BlockRange['hasBlooms'],
): void {
  let at = 0;
  for (const { number, hash, logsBloom } of blocks) {
    const logsOfBlock: ChainLog[] = [];
    for (; logs[at]?.blockNumber === number; at++) logsOfBlock.push(logs[at]!);
    for (const [index, log] of logsOfBlock.entries()) {
      if (log.blockHash !== hash) throw inconsistent(`a log of block ${number} has the hash of another block`);
      const last = logsOfBlock[index - 1];
      const isNext = hasBlooms ? log.logIndex === index : last === undefined || log.logIndex > last.logIndex;
      if (!isNext) throw inconsistent(`logs of block ${number} are missing or out of order`);
    }
    if (hasBlooms && !bloomOf(logsOfBlock).equals(logsBloom))
      throw inconsistent(`logs of block ${number} do not match the bloom filter of the block`);
  }
  if (at < logs.length)
    throw inconsistent(`a log of block ${logs[at]!.blockNumber} is out of order or was not requested`);
}

/** After these faults, a request for receipts may still succeed. */
const REFUSAL_KINDS = new Set<NodeFault['kind']>(['too-large', 'timeout', 'unreachable']);

/** Reads a block's logs. Nodes that return at most 10,000 logs may still return the receipts that contain them. */
async function readLogsOf(node: ChainNode, hash: string, isSingle: boolean): Promise<readonly ChainLog[]> {
  try {
    return await node.logsOf(hash);
  } catch (refusal) {
    if (!isSingle || !(refusal instanceof NodeFault) || !REFUSAL_KINDS.has(refusal.kind)) throw refusal;
    return await node.logsByReceipts(hash).catch((fault: unknown) => {
      // Overload and inconsistency take precedence over the first fault.
      const hasPrecedence = !(fault instanceof NodeFault) || fault.kind === 'busy' || fault.kind === 'inconsistent';
      throw hasPrecedence ? fault : refusal;
    });
  }
}

async function readLogs(
  node: ChainNode,
  blocks: readonly ChainBlock[],
  hasBlooms: boolean,
): Promise<readonly ChainLog[]> {
  const requested = hasBlooms ? blocks.filter(({ logsBloom }) => !isEmptyBloom(logsBloom)) : blocks;
  if (requested.length > BY_HASH_MAX) {
    const [first, last] = [blocks[0]!, blocks.at(-1)!];
    const logs = await node.logsIn(first.number, last.number);
    // Another node behind the same URL may have responded to the request for logs.
    for (const { number, hash } of [first, last])
      if ((await node.block(number))?.hash !== hash)
        throw inconsistent(`block ${number} was replaced while its logs were read`);
    return logs;
  }
  const logs: ChainLog[] = [];
  for (const { hash } of requested) for (const log of await readLogsOf(node, hash, blocks.length === 1)) logs.push(log);
  return logs;
}

function checkKnownBlocks(blocks: readonly ChainBlock[], { from, after, knownBlocks }: BlockRange): void {
  if (after !== null && blocks[0]!.parentHash !== after.hash)
    throw new ForkFault(after, `block ${from} on the node does not link to indexed block ${after.number}`);
  for (const name of knownBlocks) {
    const found = blocks[name.number - from];
    if (found !== undefined && found.hash !== name.hash)
      throw new ForkFault(name, `block ${name.number} on the node differs from the known block`);
  }
}

async function readBlocks(node: ChainNode, range: BlockRange): Promise<readonly ChainBlock[]> {
  const { from, to, knownBlocks } = range;
  const numbers = knownBlocks.map(({ number }) => number).filter((number) => number > to && number - to <= LINKED_MAX);
  const end = numbers.reduce((most, each) => Math.max(most, each), to);
  const blocks = range.blocks ?? (await node.blocks(from, end));
  checkLinks(blocks, { from, to: range.blocks === undefined ? end : to });
  checkKnownBlocks(blocks, range);
  const blocksOfRange = blocks.slice(0, to - from + 1);
  if (range.blocks === undefined) await checkFarBlocks(node, blocksOfRange.at(-1)!, range);
  return blocksOfRange;
}

/** Requests all blocks together, because separate responses may come from nodes on different chains. */
async function checkFarBlocks(node: ChainNode, last: ChainBlock, { knownBlocks }: BlockRange): Promise<void> {
  const farBlocks = knownBlocks.filter(({ number }) => number - last.number > LINKED_MAX);
  if (farBlocks.length === 0) return;
  const [reread, ...found] = await node.blocksAt([last.number, ...farBlocks.map(({ number }) => number)]);
  for (const [index, name] of farBlocks.entries()) {
    const { hash } = found[index] ?? {};
    if (hash === undefined) throw new NodeFault('behind', `the node does not return final block ${name.number}`);
    if (hash !== name.hash) throw new ForkFault(name, `block ${name.number} on the node differs from the known block`);
  }
  if (reread?.hash !== last.hash)
    throw inconsistent(`block ${last.number} is not on the chain of block ${farBlocks[0]!.number}`);
}

/** Reads the time on which the first block's activity budget depends. */
async function readParentTime(
  node: ChainNode,
  { number, parentHash }: ChainBlock,
  logs: readonly ChainLog[],
): Promise<number | null> {
  const isFirst = ({ blockNumber }: ChainLog) => blockNumber === number;
  const found = logs.find((log) => !isFirst(log) || log.topics[0] === CONSECUTIVE_TRANSFER);
  if (number === 0 || found === undefined || !isFirst(found)) return null;
  const parent = await node.block(number - 1);
  if (parent === null) throw new NodeFault('behind', `the node does not return block ${number - 1}`);
  if (parent.hash !== parentHash) throw inconsistent(`block ${number} does not link to the previous block`);
  return parent.timestampS;
}

/**
 * Reads blocks and their logs, and checks them against the known blocks and the bloom filters. @throws ForkFault if a
 * required block is not on the node's chain; NodeFault `too-large` if a smaller range may succeed
 */
export async function readRange(node: ChainNode, range: BlockRange): Promise<ReadBlocks> {
  const blocks = await readBlocks(node, range);
  const logs = await readLogs(node, blocks, range.hasBlooms);
  checkLogs(blocks, logs, range.hasBlooms);
  return { blocks, logs, parentTimestampS: await readParentTime(node, blocks[0]!, logs) };
}

const BLOOM_BYTES = 256;
const BITS_MASK = BLOOM_BYTES * 8 - 1;
/** The same contracts and topics recur, and hashing them takes most of the time. */
const CACHED_MAX = 50_000;

type Bits = readonly [number, number, number];

const cachedBits = new Map<string, Bits>();

function bitsOf(text: string): Bits {
  const cached = cachedBits.get(text);
  if (cached !== undefined) return cached;
  const hash = keccak(Buffer.from(text.slice(2), 'hex'));
  const bits: Bits = [
    hash.readUInt16BE(0) & BITS_MASK,
    hash.readUInt16BE(2) & BITS_MASK,
    hash.readUInt16BE(4) & BITS_MASK,
  ];
  if (cachedBits.size >= CACHED_MAX) cachedBits.delete(cachedBits.keys().next().value!);
  cachedBits.set(text, bits);
  return bits;
}

export function bloomOf(logs: Iterable<{ readonly address: string; readonly topics: readonly string[] }>): Buffer {
  const bloom = Buffer.alloc(BLOOM_BYTES);
  const seen = new Set<string>();
  for (const { address, topics } of logs) for (const text of [address, ...topics]) seen.add(text);
  for (const text of seen) for (const bit of bitsOf(text)) bloom[BLOOM_BYTES - 1 - (bit >> 3)]! |= 1 << (bit & 7);
  return bloom;
}

const isEmptyBloom = (bloom: Buffer): boolean => bloom.every((byte) => byte === 0);
