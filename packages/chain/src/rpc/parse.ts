import { type ChainBlock, type ChainLog, NodeFault } from '../node.ts';

const HEX = /^0x[0-9a-f]*$/;
const BLOOM_DIGITS = 2 + 512;
const HASH_DIGITS = 2 + 64;
const ADDRESS_DIGITS = 2 + 40;
const TOPICS_MAX = 4;

const noAnswer = (what: string) => new NodeFault('unreachable', `it answered with ${what}`);

type Members = Record<string, unknown>;

function membersOf(value: unknown, what: string): Members {
  if (typeof value !== 'object' || value === null) throw noAnswer(`no ${what}`);
  return value as Members;
}

/** Checks a hexadecimal text of so many digits with `0x`, and returns it in lower case. */
function hex(value: unknown, digits: number | null, what: string): string {
  const text = typeof value === 'string' ? value.toLowerCase() : '';
  if (!HEX.test(text) || (digits !== null && text.length !== digits)) throw noAnswer(`an invalid ${what}`);
  return text;
}

/** Cache of texts that recur in logs: contracts, topics, owners, blocks and transactions. */
const REPEATED_MAX = 50_000;
const repeatedTexts = new Map<string, string>();

/** Like `hex`, for texts that recur: each is checked once and in memory once. */
function repeatedHex(value: unknown, digits: number, what: string): string {
  const known = typeof value === 'string' ? repeatedTexts.get(value) : undefined;
  if (known?.length === digits) return known;
  const text = hex(value, digits, what);
  if (repeatedTexts.size >= REPEATED_MAX) repeatedTexts.clear();
  repeatedTexts.set(value as string, text);
  return text;
}

/** @throws NodeFault when it is no safe integer */
export function parseQuantity(value: unknown, what: string): number {
  const text = hex(value, null, what);
  const number = text.length > 2 ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(number)) throw noAnswer(`an invalid ${what}`);
  return number;
}

/** Null for an unknown block. @throws NodeFault when it is no block */
export function parseBlock(value: unknown): ChainBlock | null {
  if (value === null || value === undefined) return null;
  const block = membersOf(value, 'block');
  return {
    number: parseQuantity(block.number, 'number of a block'),
    hash: hex(block.hash, HASH_DIGITS, 'hash of a block'),
    parentHash: hex(block.parentHash, HASH_DIGITS, 'hash of a block'),
    timestampS: parseQuantity(block.timestamp, 'time of a block'),
    logsBloom: Buffer.from(hex(block.logsBloom, BLOOM_DIGITS, 'bloom').slice(2), 'hex'),
  };
}

function parseLog(value: unknown): ChainLog {
  const log = membersOf(value, 'log');
  if (!Array.isArray(log.topics) || log.topics.length > TOPICS_MAX) throw noAnswer('a log without topics');
  const data = hex(log.data, null, 'data of a log');
  if (data.length % 2 !== 0) throw noAnswer('data of a log with half a byte');
  return {
    blockNumber: parseQuantity(log.blockNumber, 'number of a block'),
    blockHash: repeatedHex(log.blockHash, HASH_DIGITS, 'hash of a block'),
    transactionHash: repeatedHex(log.transactionHash, HASH_DIGITS, 'hash of a transaction'),
    transactionIndex: parseQuantity(log.transactionIndex, 'index of a transaction'),
    logIndex: parseQuantity(log.logIndex, 'index of a log'),
    address: repeatedHex(log.address, ADDRESS_DIGITS, 'address'),
    topics: log.topics.map((topic) => repeatedHex(topic, HASH_DIGITS, 'topic')),
    data,
  };
}

/** @throws NodeFault when it is no list of logs */
export function parseLogs(value: unknown): ChainLog[] {
  if (!Array.isArray(value)) throw noAnswer('no list of logs');
  return value.map(parseLog);
}

const inconsistent = (message: string) => new NodeFault('inconsistent', message);
const unknownBlock = () => new NodeFault('behind', 'it does not know the block');

/**
 * The logs of the receipts of these transactions, in their order.
 * @throws NodeFault when it is no list of receipts, or not one receipt for each of them
 */
export function parseReceipts(
  value: unknown,
  { blockHash, transactions }: { readonly blockHash: string; readonly transactions: readonly string[] },
): ChainLog[] {
  if (value === null) throw unknownBlock();
  if (!Array.isArray(value)) throw noAnswer('no list of receipts');
  if (value.length !== transactions.length)
    throw inconsistent(`it gave ${value.length} receipts of ${transactions.length} transactions`);
  const logs: ChainLog[] = [];
  for (const [index, each] of value.entries()) {
    if (each === null) throw unknownBlock();
    const receipt = membersOf(each, 'receipt');
    if (hex(receipt.blockHash, HASH_DIGITS, 'hash of a block') !== blockHash)
      throw inconsistent('a receipt is of another block than was asked for');
    if (hex(receipt.transactionHash, HASH_DIGITS, 'hash of a transaction') !== transactions[index])
      throw inconsistent('a receipt is of another transaction than the one at its place in the block');
    for (const log of parseLogs(receipt.logs)) {
      if (log.transactionHash !== transactions[index]) throw inconsistent('a receipt has a log of another transaction');
      logs.push(log);
    }
  }
  return logs;
}

/** The hashes of a block's transactions, in their order. @throws NodeFault when it is not this block */
export function parseTransactions(value: unknown, blockHash: string): string[] {
  if (value === null || value === undefined) throw unknownBlock();
  const block = membersOf(value, 'block');
  if (hex(block.hash, HASH_DIGITS, 'hash of a block') !== blockHash)
    throw inconsistent('it gave another block than was asked for');
  if (!Array.isArray(block.transactions)) throw noAnswer('a block without its transactions');
  return block.transactions.map((hash) => hex(hash, HASH_DIGITS, 'hash of a transaction'));
}

/** Hexadecimal of any length. @throws NodeFault */
export const parseBytes = (value: unknown): string => hex(value, null, 'answer of a contract');
