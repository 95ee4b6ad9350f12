import { type ActivityRecord, fromHexText } from '@playline/contracts';
import { activityIdOf } from '../activity-id.ts';
import { readDetails } from '../import/details.ts';
import type { ChainBlock, ChainLog } from '../node.ts';
import { BLOCK_LIMITS, findOverBudget } from './block-budget.ts';
import { type BridgeEvent, readBridge } from './bridges.ts';
import { type LogActivity, type LogReading, NOTHING, type Summary, type UnreadReason, unread } from './log-reading.ts';
import type { ReadBlocks } from './read-range.ts';
import { readSale } from './sales.ts';
import { countTokens, readTransfers } from './transfers.ts';

/** The settings that decide which activities the logs of a chain give. */
export interface LogSettings {
  /** Name of the chain. */
  readonly chain: string;
  /** Symbol of its native currency. */
  readonly nativeSymbol: string;
  /** Contracts whose sales count: any contract can emit the event. In lower case. */
  readonly marketplaces: readonly string[];
  readonly bridges: readonly BridgeEvent[];
  /** Contracts whose `Transfer` has fewer indexed parameters than the standards, and what they are. */
  readonly legacyTokens?: readonly LegacyToken[];
}

/** A token contract from before the standards. Its logs alone do not show whether a number is an amount or an id. */
export interface LegacyToken {
  /** In lower case. */
  readonly contract: string;
  readonly type: 'ERC20' | 'ERC721';
}

/** The records of one log. */
export interface LogRecords {
  readonly records: readonly ActivityRecord[];
  /** Contracts of the ERC-20 tokens among them. */
  readonly tokens: readonly string[];
  /** Set when the log is over the budget of its block: then it has no records. */
  readonly summary: Summary | null;
  readonly unread: UnreadReason | null;
}

/** A log of a block, and what it contains. */
export interface ReadLog {
  readonly block: ChainBlock;
  readonly log: ChainLog;
  readonly reading: LogRecords;
}

const TRACE_ID_DIGITS = 32;
const MICROSECONDS = 1_000_000;

/**
 * Creates the function that turns the logs of whole blocks into records, one log after the other. The same block always
 * gives the same records, whichever blocks are read with it: logs with several tokens share a budget that depends on the
 * block and the time of the one before, `indexedAt` is the time of the block, and the trace id is the beginning of the
 * transaction hash.
 */
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
      if (reading !== NOTHING) return reading;
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
      const own: ChainLog[] = [];
      for (; logs[at]?.blockNumber === block.number; at++) own.push(logs[at]!);
      const many = own.map(countTokens).filter((log) => log !== null);
      const over = findOverBudget(many, limits, block.timestampS - (before ?? block.timestampS));
      before = block.timestampS;
      for (const log of own) {
        const reading = readOne(log, over.has(log.logIndex));
        yield { block, log, reading: toRecords(log, reading, block.timestampS * MICROSECONDS) };
      }
    }
  };
}

/** Drops a sale whose details are too long for a page, one of hundreds of assets. */
function withinLength(reading: LogReading): LogReading {
  const isLong = reading.activities.some(({ type, details }) => readDetails(type, JSON.stringify(details)) === null);
  return isLong ? unread('too-long') : reading;
}

function tokensOf(activities: readonly LogActivity[]): string[] {
  const isToken = ({ details }: LogActivity) => (details.asset as { contract_type?: string }).contract_type === 'ERC20';
  return [...new Set(activities.filter(isToken).map(({ contractAddress }) => contractAddress))];
}

interface RecordPlace {
  readonly log: ChainLog;
  readonly item: number;
  readonly chain: string;
  readonly indexedAt: number;
}

function recordOf(activity: LogActivity, { log, item, chain, indexedAt }: RecordPlace): ActivityRecord {
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
