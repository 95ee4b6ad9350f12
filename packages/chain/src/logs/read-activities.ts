import { type ActivityRecord, fromHexText } from '@playline/contracts';
import { activityIdOf } from '../activity-id.ts';
import { readDetails } from '../import/details.ts';
import type { ChainLog } from '../node.ts';
import { BlockBudget } from './block-budget.ts';
import { type BridgeEvent, readBridge } from './bridges.ts';
import { type LogActivity, type LogReading, NOTHING, type Summary, type UnreadReason, unread } from './log-reading.ts';
import { readSale } from './sales.ts';
import { readTransfers } from './transfers.ts';

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
  /** Set when the log is over the budget of its contract and block: then it has no records. */
  readonly summary: Summary | null;
  readonly unread: UnreadReason | null;
}

const TRACE_ID_DIGITS = 32;
const MICROSECONDS = 1_000_000;

/**
 * Creates the function that turns logs into records. It takes all logs of a block in order, because logs with several
 * tokens share a budget. So the same block always gives the same records: `indexedAt` is the time of the block, and the
 * trace id is the beginning of the transaction hash.
 */
export function createReadActivities(
  settings: LogSettings,
  budget = new BlockBudget(),
): (log: ChainLog, blockTimestampS: number) => LogRecords {
  const marketplaces = new Set(settings.marketplaces);
  const bridges = Map.groupBy(settings.bridges, ({ contract }) => contract);
  const legacy = new Map(settings.legacyTokens?.map(({ contract, type }) => [contract, type]));
  const readOne = (log: ChainLog): LogReading => {
    if (marketplaces.has(log.address)) return withinLength(readSale(log, settings.nativeSymbol));
    for (const event of bridges.get(log.address) ?? []) {
      const reading = readBridge(log, event);
      if (reading !== NOTHING) return reading;
    }
    return readTransfers(log, budget, legacy);
  };
  return (log, blockTimestampS) => {
    const { activities, summary, unread: reason } = readOne(log);
    const toRecord = (activity: LogActivity, item: number) =>
      recordOf(activity, { log, item, chain: settings.chain, indexedAt: blockTimestampS * MICROSECONDS });
    return { records: activities.map(toRecord), tokens: tokensOf(activities), summary, unread: reason };
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
