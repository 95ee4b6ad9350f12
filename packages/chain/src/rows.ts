import {
  ACTIVITY_TYPES,
  type ActivityRecord,
  type ActivityType,
  type TokenRecord,
  VERIFICATION_STATUSES,
  type VerificationStatus,
} from '@playline/contracts';
import { readDetails } from './import/details.ts';
import { MICROSECONDS_MAX, type Position } from './position.ts';
import { isChainName, isUint64Text, toAddressText, toHashText, toUuidText } from './texts.ts';

/** Where a record stood in the log, and the time that the writer gave it. */
export interface LoggedVersion {
  /** Epoch microseconds: from the record's own time, greater than that of every record before it in its partition. */
  readonly updatedAt: number;
  readonly partition: number;
  readonly offset: number;
  /** Epoch milliseconds by the broker's clock. */
  readonly loggedAtMs: number;
}

/** What of an activity is the same in every version of it. */
export interface ActivityConstants {
  /** Name of the chain. */
  readonly chain: string;
  readonly type: ActivityType;
  /** `0x` and 40 lower-case hexadecimal digits. */
  readonly contractAddress: string;
  /** Epoch microseconds. */
  readonly indexedAt: number;
}

/** A version of an activity, as it is stored. */
export interface ActivityRow extends Position, ActivityConstants, LoggedVersion {
  readonly blockchainMetadata: {
    /** `0x` and 64 lower-case hexadecimal digits. */
    readonly transactionHash: string;
    /** Decimal digits without leading zeros, below 2^64; so are the next two. */
    readonly blockNumber: string;
    readonly transactionIndex: string;
    readonly logIndex: string | null;
  } | null;
  /** JSON text of an object. */
  readonly details: string;
  readonly traceId: string;
}

/** The state of a token as it is stored. Addresses as in `ActivityRow`. */
export interface TokenRow extends LoggedVersion {
  readonly chain: string;
  readonly contractAddress: string;
  readonly rootContractAddress: string | null;
  readonly symbol: string | null;
  readonly decimals: number | null;
  readonly imageUrl: string | null;
  readonly name: string | null;
  readonly verificationStatus: VerificationStatus;
  readonly isCanonical: boolean;
  readonly rootChainId: string | null;
  readonly bridgeUsed: string | null;
  readonly traceId: string;
}

/** The tokens' column has a byte; the contracts themselves have no more. */
export const DECIMALS_MAX = 255;

/** @throws RangeError that says what of a record no column may hold, without its value */
function demand(holds: boolean, what: string): void {
  if (!holds) throw new RangeError(what);
}

const isMicroseconds = (value: number) => Number.isInteger(value) && value >= 0 && value <= MICROSECONDS_MAX;
const isOneOf = (values: readonly string[], value: string) => values.includes(value);

function toVersion({ updatedAt, partition, offset, loggedAtMs }: LoggedVersion): LoggedVersion {
  demand(isMicroseconds(updatedAt), 'updated_at does not fit');
  return { updatedAt, partition, offset, loggedAtMs };
}

/**
 * The row of a record of `chain.activities.v1`. Pure: the same record in the same place gives the same row. Whoever brought
 * the record to the log, its details have the members of its type and no others: a page shows what the contract says.
 * @throws RangeError when a value is none that is served or stored; its words hold none of the record
 */
export function toActivityRow(record: ActivityRecord, version: LoggedVersion): ActivityRow {
  const { chain, type, indexedAt, blockchainMetadata: metadata, details, traceId } = record;
  demand(isChainName(chain), 'chain is no name of a chain');
  demand(isOneOf(ACTIVITY_TYPES, type), 'type is none that is known');
  demand(isMicroseconds(indexedAt), 'indexed_at does not fit');
  const stored = readDetails(type, details);
  if (stored === null) throw new RangeError('details are not those of the type, or longer than 64 KiB');
  const contractAddress = toAddressText(record.contractAddress);
  demand(contractAddress === stored.contractAddress, 'contractAddress is not that of the asset');
  const numbers = metadata === null ? [] : [metadata.blockNumber, metadata.transactionIndex, metadata.logIndex ?? '0'];
  demand(numbers.every(isUint64Text), 'blockchain_metadata holds a number that does not fit');
  return {
    ...toVersion(version),
    chain,
    id: toUuidText(record.id),
    type,
    contractAddress,
    indexedAt,
    blockchainMetadata: metadata && {
      transactionHash: toHashText(metadata.transactionHash),
      blockNumber: metadata.blockNumber,
      transactionIndex: metadata.transactionIndex,
      logIndex: metadata.logIndex,
    },
    details: stored.text,
    traceId,
  };
}

/**
 * The row of a record of `chain.tokens.v1`, as `toActivityRow`.
 * @throws RangeError likewise
 */
export function toTokenRow(record: TokenRecord, version: LoggedVersion): TokenRow {
  const { chain, decimals, verificationStatus, rootContractAddress: root } = record;
  demand(isChainName(chain), 'chain is no name of a chain');
  demand(isOneOf(VERIFICATION_STATUSES, verificationStatus), 'verification_status is none that is known');
  demand(decimals === null || (decimals >= 0 && decimals <= DECIMALS_MAX), 'decimals does not fit');
  return {
    ...toVersion(version),
    chain,
    contractAddress: toAddressText(record.contractAddress),
    rootContractAddress: root && toAddressText(root),
    symbol: record.symbol,
    decimals,
    imageUrl: record.imageUrl,
    name: record.name,
    verificationStatus,
    isCanonical: record.isCanonical,
    rootChainId: record.rootChainId,
    bridgeUsed: record.bridgeUsed,
    traceId: record.traceId,
  };
}

/** Names of what an update may not change, of those where two versions differ; empty when the update may be. */
export function findChanged(standing: ActivityConstants, update: ActivityConstants): string[] {
  return (['chain', 'type', 'contractAddress', 'indexedAt'] as const).filter((name) => standing[name] !== update[name]);
}

/** The part of `activities` that a row goes to: the month of its `updatedAt` in UTC. */
export function partOfActivity({ updatedAt }: Pick<ActivityRow, 'updatedAt'>): number {
  const date = new Date(Math.floor(updatedAt / 1_000));
  return date.getUTCFullYear() * 100 + date.getUTCMonth() + 1;
}
