import type { ChainLog } from '../node.ts';
import type { BlockBudget } from './block-budget.ts';
import { type LogActivity, type LogAsset, type LogReading, NOTHING, read, summarise, unread } from './log-reading.ts';
import { AbiFault, eventTopicOf, toAddress, toUint, Words, ZERO_ADDRESS } from './words.ts';

/** ERC-20 and ERC-721 share this event. The number of topics tells them apart. */
export const TRANSFER = eventTopicOf('Transfer(address,address,uint256)');
export const TRANSFER_SINGLE = eventTopicOf('TransferSingle(address,address,address,uint256,uint256)');
export const TRANSFER_BATCH = eventTopicOf('TransferBatch(address,address,address,uint256[],uint256[])');
export const CONSECUTIVE_TRANSFER = eventTopicOf('ConsecutiveTransfer(uint256,uint256,address,address)');

const WORD = 32;
const ONE_WORD = 2 + 2 * WORD;

interface Moved {
  readonly from: string;
  readonly to: string;
  readonly amount: bigint;
  readonly asset: LogAsset;
}

/** A transfer from the zero address is a mint, one to it is a burn. One from it to itself is nothing. */
function toActivity({ from, to, amount, asset }: Moved): LogActivity | null {
  const shared = { amount: String(amount), asset };
  const { contract_address: contractAddress } = asset;
  if (from === ZERO_ADDRESS && to === ZERO_ADDRESS) return null;
  if (from === ZERO_ADDRESS) return { type: 'mint', details: { to, ...shared }, contractAddress };
  if (to === ZERO_ADDRESS) return { type: 'burn', details: { from, ...shared }, contractAddress };
  return { type: 'transfer', details: { from, to, ...shared }, contractAddress };
}

function toReading(moves: readonly Moved[]): LogReading {
  const activities = moves.map(toActivity);
  // All activities of a log have the same sender and recipient.
  if (activities.includes(null)) return unread('nobody');
  return read(activities as LogActivity[]);
}

/** The NFT of a transfer. The amount is 1 for an ERC-721. */
const nft = (kind: 'ERC721' | 'ERC1155', contract: string, [id, amount]: readonly [bigint, bigint]): LogAsset => ({
  contract_type: kind,
  contract_address: contract,
  token_id: String(id),
  amount: String(amount),
});

/** Contracts from before the standards, whose logs do not show what they are. By contract in lower case. */
export type LegacyTokens = ReadonlyMap<string, 'ERC20' | 'ERC721'>;

/**
 * Decodes the event of a contract that was declared with fewer indexed parameters than the standards have: all three
 * in the data, or the last one. Then an amount and an id look the same.
 */
function readLegacyTransfer({ address, topics, data }: ChainLog, kind: 'ERC20' | 'ERC721'): LogReading {
  const words = new Words(data);
  const isUnindexed = topics.length === 1 && words.length === 3 * WORD;
  if (!isUnindexed && (topics.length !== 3 || words.length !== WORD)) return unread('malformed');
  const [from, to, last] = isUnindexed
    ? [words.address(0), words.address(WORD), words.uint(2 * WORD)]
    : [toAddress(topics[1]!), toAddress(topics[2]!), words.uint(0)];
  if (kind === 'ERC721') return toReading([{ from, to, amount: 1n, asset: nft('ERC721', address, [last, 1n]) }]);
  return toReading([{ from, to, amount: last, asset: { contract_type: 'ERC20', contract_address: address } }]);
}

function readTransfer(log: ChainLog, legacy: LegacyTokens): LogReading {
  const { address, topics, data } = log;
  const [, from, to, id] = topics;
  const legacyKind = topics.length === 4 ? undefined : legacy.get(address);
  if (legacyKind !== undefined) return readLegacyTransfer(log, legacyKind);
  if (topics.length === 3 && data.length === ONE_WORD) {
    const asset: LogAsset = { contract_type: 'ERC20', contract_address: address };
    return toReading([{ from: toAddress(from!), to: toAddress(to!), amount: toUint(data), asset }]);
  }
  if (topics.length === 4 && data === '0x') {
    const asset = nft('ERC721', address, [toUint(id!), 1n]);
    return toReading([{ from: toAddress(from!), to: toAddress(to!), amount: 1n, asset }]);
  }
  const isUnindexed = topics.length < 3 && data.length === 2 + 2 * WORD * (4 - topics.length);
  return unread(isUnindexed ? 'unindexed' : 'malformed');
}

function readSingle({ address, topics, data }: ChainLog): LogReading {
  if (topics.length !== 4) return unread('malformed');
  const words = new Words(data);
  const [id, amount] = [words.uint(0), words.uint(WORD)];
  const asset = nft('ERC1155', address, [id, amount]);
  return toReading([{ from: toAddress(topics[2]!), to: toAddress(topics[3]!), amount, asset }]);
}

function readBatch(log: ChainLog, budget: BlockBudget): LogReading {
  const { address, topics, data } = log;
  if (topics.length !== 4) return unread('malformed');
  const [from, to] = [toAddress(topics[2]!), toAddress(topics[3]!)];
  const words = new Words(data);
  const [ids, amounts] = [words.uints(0), words.uints(WORD)];
  if (ids.length !== amounts.length) return unread('malformed');
  if (from === ZERO_ADDRESS && to === ZERO_ADDRESS) return unread('nobody');
  const tokens = BigInt(ids.length);
  if (!budget.take(log, tokens, false)) return summarise({ contract: address, tokens, ...extremesOf(ids) });
  const toMove = (id: bigint, index: number) => {
    const amount = amounts[index]!;
    return { from, to, amount, asset: nft('ERC1155', address, [id, amount]) };
  };
  return toReading(ids.map(toMove));
}

function extremesOf(ids: readonly bigint[]): { firstId: bigint; lastId: bigint } {
  const lowest = ids.reduce((least, id) => (id < least ? id : least));
  return { firstId: lowest, lastId: ids.reduce((most, id) => (id > most ? id : most)) };
}

function readConsecutive(log: ChainLog, budget: BlockBudget): LogReading {
  const { address, topics, data } = log;
  if (topics.length !== 4) return unread('malformed');
  const [firstId, lastId] = [toUint(topics[1]!), new Words(data).uint(0)];
  const [from, to] = [toAddress(topics[2]!), toAddress(topics[3]!)];
  if (lastId < firstId) return unread('malformed');
  if (from === ZERO_ADDRESS && to === ZERO_ADDRESS) return unread('nobody');
  const tokens = lastId - firstId + 1n;
  // Before anything is made of the range: the event can report 2^256 ids.
  if (!budget.take(log, tokens, true)) return summarise({ contract: address, tokens, firstId, lastId });
  const toMove = (_: unknown, index: number) => {
    return { from, to, amount: 1n, asset: nft('ERC721', address, [firstId + BigInt(index), 1n]) };
  };
  return toReading(Array.from({ length: Number(tokens) }, toMove));
}

/** Decodes a log of a token: mints, burns and transfers. @param budget of the blocks that are read */
export function readTransfers(log: ChainLog, budget: BlockBudget, legacy: LegacyTokens): LogReading {
  try {
    if (log.topics[0] === TRANSFER) return readTransfer(log, legacy);
    if (log.topics[0] === TRANSFER_SINGLE) return readSingle(log);
    if (log.topics[0] === TRANSFER_BATCH) return readBatch(log, budget);
    if (log.topics[0] === CONSECUTIVE_TRANSFER) return readConsecutive(log, budget);
    return NOTHING;
  } catch (fault) {
    if (fault instanceof AbiFault) return unread('malformed');
    throw fault;
  }
}
