import type { ChainLog } from '../node.ts';
import { type LogActivity, type LogAsset, type LogReading, NOTHING, read, unread } from './log-reading.ts';
import { AbiFault, eventTopicOf, toAddress, toUint, Words, ZERO_ADDRESS } from './words.ts';

/** ERC-20 and ERC-721 share this event. The number of topics tells them apart. */
export const TRANSFER = eventTopicOf('Transfer(address,address,uint256)');
export const TRANSFER_SINGLE = eventTopicOf('TransferSingle(address,address,address,uint256,uint256)');
export const TRANSFER_BATCH = eventTopicOf('TransferBatch(address,address,address,uint256[],uint256[])');
export const CONSECUTIVE_TRANSFER = eventTopicOf('ConsecutiveTransfer(uint256,uint256,address,address)');

/**
 * Most tokens taken from one `ConsecutiveTransfer`. An event can claim 2^256 ids at no cost; common contracts mint at
 * most 5,000 with it.
 */
export const CONSECUTIVE_MAX = 5_000;
/**
 * Most items taken from one `TransferBatch`, because all activities of a log are published in one step. A contract that
 * stores balances fits about 3,000 into a block.
 */
export const BATCH_MAX = 20_000;
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

function toReading(moves: readonly Moved[], claimed: bigint | null = null): LogReading {
  const activities = moves.map(toActivity);
  // All activities of a log have the same sender and recipient.
  if (activities.includes(null)) return unread('nobody');
  return read(activities as LogActivity[], claimed);
}

/** The NFT of a transfer. The amount is 1 for an ERC-721. */
const nft = (kind: 'ERC721' | 'ERC1155', contract: string, [id, amount]: readonly [bigint, bigint]): LogAsset => ({
  contract_type: kind,
  contract_address: contract,
  token_id: String(id),
  amount: String(amount),
});

function readTransfer({ address, topics, data }: ChainLog): LogReading {
  const [, from, to, id] = topics;
  // Some early NFTs have their id in the data, or no indexed parameters. Their logs fit neither standard.
  if (topics.length === 3 && data.length === ONE_WORD) {
    const asset: LogAsset = { contract_type: 'ERC20', contract_address: address };
    return toReading([{ from: toAddress(from!), to: toAddress(to!), amount: toUint(data), asset }]);
  }
  if (topics.length === 4 && data === '0x') {
    const asset = nft('ERC721', address, [toUint(id!), 1n]);
    return toReading([{ from: toAddress(from!), to: toAddress(to!), amount: 1n, asset }]);
  }
  return unread('malformed');
}

function readMany({ address, topics, data }: ChainLog, isBatch: boolean): LogReading {
  if (topics.length !== 4) return unread('malformed');
  const [from, to] = [toAddress(topics[2]!), toAddress(topics[3]!)];
  const words = new Words(data);
  const ids = isBatch ? words.uints(0) : [words.uint(0)];
  const amounts = isBatch ? words.uints(WORD) : [words.uint(WORD)];
  if (ids.length !== amounts.length) return unread('malformed');
  const moves = ids.slice(0, BATCH_MAX).map((id, index) => {
    const amount = amounts[index]!;
    return { from, to, amount, asset: nft('ERC1155', address, [id, amount]) };
  });
  return toReading(moves, ids.length > BATCH_MAX ? BigInt(ids.length) : null);
}

function readConsecutive({ address, topics, data }: ChainLog): LogReading {
  if (topics.length !== 4) return unread('malformed');
  const [first, last] = [toUint(topics[1]!), new Words(data).uint(0)];
  const [from, to] = [toAddress(topics[2]!), toAddress(topics[3]!)];
  if (last < first) return unread('malformed');
  const count = last - first + 1n;
  const taken = count > BigInt(CONSECUTIVE_MAX) ? CONSECUTIVE_MAX : Number(count);
  const moves = Array.from({ length: taken }, (_, index) => ({
    ...{ from, to, amount: 1n },
    asset: nft('ERC721', address, [first + BigInt(index), 1n]),
  }));
  return toReading(moves, count > BigInt(CONSECUTIVE_MAX) ? count : null);
}

/** Decodes a log of a token: mints, burns and transfers. */
export function readTransfers(log: ChainLog): LogReading {
  try {
    if (log.topics[0] === TRANSFER) return readTransfer(log);
    if (log.topics[0] === TRANSFER_SINGLE) return readMany(log, false);
    if (log.topics[0] === TRANSFER_BATCH) return readMany(log, true);
    if (log.topics[0] === CONSECUTIVE_TRANSFER) return readConsecutive(log);
    return NOTHING;
  } catch (fault) {
    if (fault instanceof AbiFault) return unread('malformed');
    throw fault;
  }
}
