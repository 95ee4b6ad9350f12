import type { ChainLog } from '../node.ts';
import { AbiFault, AbiReader, eventTopicOf, toAddress, toUint, ZERO_ADDRESS } from './abi-reader.ts';
import type { MultiTokenLog } from './block-budget.ts';
import {
  EMPTY_READING,
  type LogActivity,
  type LogAsset,
  type LogReading,
  read,
  type Summary,
  summarise,
  unread,
} from './log-reading.ts';

/** ERC-20 and ERC-721 use the same event with different numbers of topics. */
export const TRANSFER = eventTopicOf('Transfer(address,address,uint256)');
export const TRANSFER_SINGLE = eventTopicOf('TransferSingle(address,address,address,uint256,uint256)');
export const TRANSFER_BATCH = eventTopicOf('TransferBatch(address,address,address,uint256[],uint256[])');
export const CONSECUTIVE_TRANSFER = eventTopicOf('ConsecutiveTransfer(uint256,uint256,address,address)');

const WORD = 32;
const WORD_DIGITS = 2 + 2 * WORD;

interface Move {
  readonly from: string;
  readonly to: string;
  readonly amount: bigint;
  readonly asset: LogAsset;
}

/** A transfer from the zero address is a mint; a transfer to the zero address is a burn. */
function toActivity({ from, to, amount, asset }: Move): LogActivity | null {
  const shared = { amount: String(amount), asset };
  const { contract_address: contractAddress } = asset;
  if (from === ZERO_ADDRESS && to === ZERO_ADDRESS) return null;
  if (from === ZERO_ADDRESS) return { type: 'mint', details: { to, ...shared }, contractAddress };
  if (to === ZERO_ADDRESS) return { type: 'burn', details: { from, ...shared }, contractAddress };
  return { type: 'transfer', details: { from, to, ...shared }, contractAddress };
}

function toReading(moves: readonly Move[]): LogReading {
  const activities = moves.map(toActivity);
  if (activities.includes(null)) return unread('no-party');
  return read(activities as LogActivity[]);
}

const nft = (kind: 'ERC721' | 'ERC1155', contract: string, [id, amount]: readonly [bigint, bigint]): LogAsset => ({
  contract_type: kind,
  contract_address: contract,
  token_id: String(id),
  amount: String(amount),
});

/** Token types by contract address in lower case. */
export type LegacyTokens = ReadonlyMap<string, 'ERC20' | 'ERC721'>;

/** Reads an event with fewer indexed parameters than the standards require. Its amount cannot be distinguished from an id. */
function readLegacyTransfer({ address, topics, data }: ChainLog, kind: 'ERC20' | 'ERC721'): LogReading {
  const reader = new AbiReader(data);
  const isUnindexed = topics.length === 1 && reader.length === 3 * WORD;
  if (!isUnindexed && (topics.length !== 3 || reader.length !== WORD)) return unread('malformed');
  const [from, to, last] = isUnindexed
    ? [reader.address(0), reader.address(WORD), reader.uint(2 * WORD)]
    : [toAddress(topics[1]!), toAddress(topics[2]!), reader.uint(0)];
  if (kind === 'ERC721') return toReading([{ from, to, amount: 1n, asset: nft('ERC721', address, [last, 1n]) }]);
  return toReading([{ from, to, amount: last, asset: { contract_type: 'ERC20', contract_address: address } }]);
}

function readTransfer(log: ChainLog, legacy: LegacyTokens): LogReading {
  const { address, topics, data } = log;
  const [, from, to, id] = topics;
  const legacyKind = topics.length === 4 ? undefined : legacy.get(address);
  if (legacyKind !== undefined) return readLegacyTransfer(log, legacyKind);
  if (topics.length === 3 && data.length === WORD_DIGITS) {
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
  const reader = new AbiReader(data);
  const [id, amount] = [reader.uint(0), reader.uint(WORD)];
  const asset = nft('ERC1155', address, [id, amount]);
  return toReading([{ from: toAddress(topics[2]!), to: toAddress(topics[3]!), amount, asset }]);
}

/** Items are created on demand, because an event can report 2^256 ids. */
interface ParsedMultiToken extends Pick<Move, 'from' | 'to'>, Omit<Summary, 'contract'> {
  itemOf(index: number): Pick<Move, 'amount' | 'asset'>;
}

/** @throws AbiFault */
function parseMultiToken({ address, topics, data }: ChainLog): ParsedMultiToken {
  if (topics.length !== 4) throw new AbiFault('has the wrong number of topics');
  const reader = new AbiReader(data);
  const [from, to] = [toAddress(topics[2]!), toAddress(topics[3]!)];
  if (topics[0] === CONSECUTIVE_TRANSFER) {
    const [firstId, lastId] = [toUint(topics[1]!), reader.uint(0)];
    if (lastId < firstId) throw new AbiFault('has a last id below its first id');
    const itemOf = (index: number) => {
      return { amount: 1n, asset: nft('ERC721', address, [firstId + BigInt(index), 1n]) };
    };
    return { from, to, tokens: lastId - firstId + 1n, firstId, lastId, itemOf };
  }
  const [ids, amounts] = [reader.uints(0), reader.uints(WORD)];
  if (ids.length !== amounts.length) throw new AbiFault('has different numbers of ids and amounts');
  const firstId = ids.reduce((least, id) => (id < least ? id : least), ids[0] ?? 0n);
  const lastId = ids.reduce((most, id) => (id > most ? id : most), 0n);
  const itemOf = (index: number) => {
    return { amount: amounts[index]!, asset: nft('ERC1155', address, [ids[index]!, amounts[index]!]) };
  };
  return { from, to, tokens: BigInt(ids.length), firstId, lastId, itemOf };
}

const isZeroAddress = ({ from, to }: ParsedMultiToken) => from === ZERO_ADDRESS && to === ZERO_ADDRESS;

function readMulti(log: ChainLog, isOverBudget: boolean): LogReading {
  const parsed = parseMultiToken(log);
  const { from, to, tokens, firstId, lastId, itemOf } = parsed;
  if (isZeroAddress(parsed)) return unread('no-party');
  if (isOverBudget) return summarise({ contract: log.address, tokens, firstId, lastId });
  const toMove = (_: unknown, index: number): Move => ({ from, to, ...itemOf(index) });
  return toReading(Array.from({ length: Number(tokens) }, toMove));
}

/** @returns null unless the log reports several tokens */
export function countTokens(log: ChainLog): MultiTokenLog | null {
  const isRange = log.topics[0] === CONSECUTIVE_TRANSFER;
  if (!isRange && log.topics[0] !== TRANSFER_BATCH) return null;
  try {
    const parsed = parseMultiToken(log);
    if (isZeroAddress(parsed)) return null;
    return { logIndex: log.logIndex, contract: log.address, tokens: parsed.tokens, isRange };
  } catch (fault) {
    if (fault instanceof AbiFault) return null;
    throw fault;
  }
}

/** Reads any kind of transfer. A log over the budget is only summarised. */
export function readTransfers(log: ChainLog, legacy: LegacyTokens, isOverBudget: boolean): LogReading {
  try {
    if (log.topics[0] === TRANSFER) return readTransfer(log, legacy);
    if (log.topics[0] === TRANSFER_SINGLE) return readSingle(log);
    if (log.topics[0] === TRANSFER_BATCH || log.topics[0] === CONSECUTIVE_TRANSFER) return readMulti(log, isOverBudget);
    return EMPTY_READING;
  } catch (fault) {
    if (fault instanceof AbiFault) return unread('malformed');
    throw fault;
  }
}
