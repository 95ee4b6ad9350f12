import { type ActivityRecord, fromHexText } from '@playline/contracts';
import { activityIdOf } from '../activity-id.ts';
import { readDetails } from '../import/details.ts';
import type { ChainBlock, ChainLog } from '../node.ts';
import { AbiFault, AbiReader, eventTopicOf, toAddress, ZERO_ADDRESS } from './abi-reader.ts';
import { BLOCK_LIMITS, findOverBudget } from './block-budget.ts';
import { type BridgeEvent, readBridge } from './bridges.ts';
import {
  EMPTY_READING,
  type LogActivity,
  type LogReading,
  read,
  type Summary,
  type UnreadReason,
  unread,
} from './log-reading.ts';
import type { ReadBlocks } from './read-range.ts';
import { countTokens, readTransfers } from './transfers.ts';

export interface LogSettings {
  readonly chain: string;
  readonly nativeSymbol: string;
  /** In lower case. Required because any contract can emit the event. */
  readonly marketplaces: readonly string[];
  readonly bridges: readonly BridgeEvent[];
  readonly legacyTokens?: readonly LegacyToken[];
}

export interface LegacyToken {
  /** In lower case. */
  readonly contract: string;
  readonly type: 'ERC20' | 'ERC721';
}

export interface LogRecords {
  readonly records: readonly ActivityRecord[];
  /** Contracts of the ERC-20 tokens in the log. */
  readonly tokens: readonly string[];
  /** Set if the log exceeds the budget. Such a log has no records. */
  readonly summary: Summary | null;
  readonly unread: UnreadReason | null;
}

export interface ReadLog {
  readonly block: ChainBlock;
  readonly log: ChainLog;
  readonly reading: LogRecords;
}

const TRACE_ID_DIGITS = 32;
const MICROSECONDS_PER_SECOND = 1_000_000;

/** Converts the logs of complete blocks to records. A block always yields the same records. */
export function createReadActivities(
  settings: LogSettings,
  limits = BLOCK_LIMITS,
): (read: ReadBlocks) => Generator<ReadLog> {
  const marketplaces = new Set(settings.marketplaces);
  const bridges = Map.groupBy(settings.bridges, ({ contract }) => contract);
  const legacy = new Map(settings.legacyTokens?.map(({ contract, type }) => [contract, type]));
  const readOne = (log: ChainLog, isOverBudget: boolean): LogReading => {
    if (marketplaces.has(log.address)) return withinLength(readSale(log, settings.nativeSymbol));
    for (const event of bridges.get(log.address) ?? []) {
      const reading = readBridge(log, event);
      if (reading !== EMPTY_READING) return reading;
    }
    return readTransfers(log, legacy, isOverBudget);
  };
  const toRecords = (log: ChainLog, { activities, summary, unread: reason }: LogReading, indexedAt: number) => {
    const toRecord = (activity: LogActivity, item: number) =>
      recordOf(activity, { log, item, chain: settings.chain, indexedAt });
    return { records: activities.map(toRecord), tokens: tokensOf(activities), summary, unread: reason };
  };
  return function* ({ blocks, logs, parentTimestampS }) {
    let [at, before] = [0, parentTimestampS];
    for (const block of blocks) {
      const logsOfBlock: ChainLog[] = [];
      for (; logs[at]?.blockNumber === block.number; at++) logsOfBlock.push(logs[at]!);
      const many = logsOfBlock.map(countTokens).filter((log) => log !== null);
      const omitted = findOverBudget(many, limits, block.timestampS - (before ?? block.timestampS));
      before = block.timestampS;
      for (const log of logsOfBlock) {
        const reading = readOne(log, omitted.has(log.logIndex));
        yield { block, log, reading: toRecords(log, reading, block.timestampS * MICROSECONDS_PER_SECOND) };
      }
    }
  };
}

/** Refuses a sale with hundreds of assets, which would be too long for a page. */
function withinLength(reading: LogReading): LogReading {
  const isLong = reading.activities.some(({ type, details }) => readDetails(type, JSON.stringify(details)) === null);
  return isLong ? unread('too-long') : reading;
}

function tokensOf(activities: readonly LogActivity[]): string[] {
  const isToken = ({ details }: LogActivity) => (details.asset as { contract_type?: string }).contract_type === 'ERC20';
  return [...new Set(activities.filter(isToken).map(({ contractAddress }) => contractAddress))];
}

function recordOf(
  activity: LogActivity,
  { log, item, chain, indexedAt }: { log: ChainLog; item: number; chain: string; indexedAt: number },
): ActivityRecord {
  const { transactionHash, logIndex } = log;
  return {
    chain,
    id: activityIdOf({ chain, transactionHash, logIndex, item }),
    type: activity.type,
    contractAddress: fromHexText(activity.contractAddress),
    indexedAt,
    blockchainMetadata: {
      transactionHash: fromHexText(transactionHash),
      blockNumber: String(log.blockNumber),
      transactionIndex: String(log.transactionIndex),
      logIndex: String(logIndex),
    },
    details: JSON.stringify(activity.details),
    traceId: transactionHash.slice(2, 2 + TRACE_ID_DIGITS),
  };
}

const OFFER = '(uint8,address,uint256,uint256)';
const PAYMENT = '(uint8,address,uint256,uint256,address)';
/** Emitted by Seaport. */
export const ORDER_FULFILLED = eventTopicOf(`OrderFulfilled(bytes32,address,address,address,${OFFER}[],${PAYMENT}[])`);

const WORD = 32;
const ITEM_KINDS = ['NATIVE', 'ERC20', 'ERC721', 'ERC1155'] as const;

interface Item {
  readonly kind: (typeof ITEM_KINDS)[number];
  readonly token: string;
  readonly id: bigint;
  readonly amount: bigint;
  /** The fulfiller, for items that the offerer spends. */
  readonly recipient: string;
}

interface Deal {
  readonly buyer: string;
  readonly seller: string;
  readonly nfts: readonly Item[];
  /** All items that the buyer pays. */
  readonly paid: readonly Item[];
  /** Items paid to neither the buyer nor the seller. */
  readonly fees: readonly Item[];
}

const isCurrency = ({ kind }: Item) => kind === 'NATIVE' || kind === 'ERC20';

function itemsOf(reader: AbiReader, at: number, recipient: string | null): Item[] {
  const size = recipient === null ? 5 : 4;
  return reader.elements(at, size).map((start) => {
    const kind = ITEM_KINDS[reader.count(start)];
    if (kind === undefined) throw new AbiFault('has an unknown item type');
    const [token, id, amount] = [
      reader.address(start + WORD),
      reader.uint(start + 2 * WORD),
      reader.uint(start + 3 * WORD),
    ];
    return { kind, token, id, amount, recipient: recipient ?? reader.address(start + 4 * WORD) };
  });
}

function toDeal(offerer: string, fulfiller: string, sides: readonly [Item[], Item[]]): Deal | null {
  const [offer, consideration] = sides;
  if (offer.length === 0) return null;
  if (offer.every((item) => !isCurrency(item)) && consideration.every(isCurrency)) {
    const fees = consideration.filter(({ recipient }) => recipient !== offerer);
    return { buyer: fulfiller, seller: offerer, nfts: offer, paid: consideration, fees };
  }
  const nfts = consideration.filter((item) => !isCurrency(item));
  if (!offer.every(isCurrency) || nfts.length === 0) return null;
  // Payments to third parties are part of the offer.
  const fees = consideration.filter((item) => isCurrency(item) && item.recipient !== fulfiller);
  return { buyer: offerer, seller: fulfiller, nfts, paid: offer, fees };
}

const sumOf = (items: readonly Item[]): bigint => items.reduce((sum, { amount }) => sum + amount, 0n);

function toSale(orderId: string, deal: Deal, nativeSymbol: string): LogReading {
  const { buyer, seller, nfts, paid, fees } = deal;
  const [first] = paid;
  const isOneCurrency = [...paid, ...fees].every(({ kind, token }) => kind === first?.kind && token === first.token);
  if (first === undefined || !isOneCurrency) return unread('several-currencies');
  const contractAddress = nfts[0]!.token;
  if (nfts.some(({ token }) => token !== contractAddress)) return unread('several-contracts');
  const [including, feesTotal] = [sumOf(paid), sumOf(fees)];
  if (feesTotal > including) return unread('malformed');
  const token =
    first.kind === 'NATIVE'
      ? { contract_type: 'NATIVE', symbol: nativeSymbol }
      : { contract_type: 'ERC20', contract_address: first.token };
  const details = {
    order_id: orderId,
    to: buyer,
    from: seller,
    asset: nfts.map(({ kind, id, amount }) => ({
      contract_type: kind,
      contract_address: contractAddress,
      token_id: String(id),
      amount: String(amount),
    })),
    payment: {
      token,
      price_excluding_fees: String(including - feesTotal),
      price_including_fees: String(including),
      fees: fees.map(({ amount, recipient }) => ({ amount: String(amount), type: 'ROYALTY', recipient })),
    },
  };
  return read([{ type: 'sale', details, contractAddress }]);
}

/** Reads a sale. Matched orders are not sales, because their event has no fulfiller. */
function readSale({ topics, data }: ChainLog, nativeSymbol: string): LogReading {
  if (topics[0] !== ORDER_FULFILLED) return EMPTY_READING;
  try {
    if (topics.length !== 3) return unread('malformed');
    const offerer = toAddress(topics[1]!);
    const reader = new AbiReader(data);
    const fulfiller = reader.address(WORD);
    if (fulfiller === ZERO_ADDRESS || offerer === ZERO_ADDRESS) return unread('no-party');
    const sides: [Item[], Item[]] = [itemsOf(reader, 2 * WORD, fulfiller), itemsOf(reader, 3 * WORD, null)];
    const deal = toDeal(offerer, fulfiller, sides);
    return deal === null ? EMPTY_READING : toSale(reader.text(0), deal, nativeSymbol);
  } catch (fault) {
    if (fault instanceof AbiFault) return unread('malformed');
    throw fault;
  }
}
