import {
  ACTIVITY_TYPES,
  type ActivityRecord,
  type ActivityType,
  isChainName,
  isUint64Text,
  type TokenRecord,
  toHexText,
  toUuidText,
  VERIFICATION_STATUSES,
  type VerificationStatus,
} from '@playline/contracts';
import { MICROSECONDS_MAX, type Position } from './cursor.ts';
import { readDetails } from './import/details.ts';

/** Where and when a record was logged. */
export interface LoggedVersion {
  /** The record's time in epoch microseconds, strictly increasing within a partition. */
  readonly updatedAt: number;
  readonly partition: number;
  readonly offset: number;
  /** The broker's timestamp. */
  readonly loggedAtMs: number;
}

/** Members that are equal in all versions of an activity. */
export interface ActivityConstants {
  readonly chain: string;
  readonly type: ActivityType;
  /** In lower case, with `0x`. */
  readonly contractAddress: string;
  /** Epoch microseconds. */
  readonly indexedAt: number;
}

export interface ActivityRow extends Position, ActivityConstants, LoggedVersion {
  readonly blockchainMetadata: {
    /** In lower case, with `0x`. */
    readonly transactionHash: string;
    /** Decimal digits, below 2^64. */
    readonly blockNumber: string;
    readonly transactionIndex: string;
    readonly logIndex: string | null;
  } | null;
  /** The details as JSON. */
  readonly details: string;
  readonly traceId: string;
}

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

export const DECIMALS_MAX = 255;

/** Throws an error that names the member but not its value. */
function assertThat(isValid: boolean, message: string): void {
  if (!isValid) throw new RangeError(message);
}

const isMicroseconds = (value: number) => Number.isInteger(value) && value >= 0 && value <= MICROSECONDS_MAX;
const isOneOf = (values: readonly string[], value: string) => values.includes(value);

function toVersion({ updatedAt, partition, offset, loggedAtMs }: LoggedVersion): LoggedVersion {
  assertThat(isMicroseconds(updatedAt), 'updated_at is out of range');
  return { updatedAt, partition, offset, loggedAtMs };
}

/** @throws RangeError if a value cannot be stored or returned; the message contains no record data */
export function toActivityRow(record: ActivityRecord, version: LoggedVersion): ActivityRow {
  const { chain, type, indexedAt, blockchainMetadata: metadata, details, traceId } = record;
  assertThat(isChainName(chain), 'chain is not a valid chain name');
  assertThat(isOneOf(ACTIVITY_TYPES, type), 'type is unknown');
  assertThat(isMicroseconds(indexedAt), 'indexed_at is out of range');
  const stored = readDetails(type, details);
  if (stored === null) throw new RangeError('details do not match the type, or are longer than 64 KiB');
  const contractAddress = toHexText(record.contractAddress);
  assertThat(contractAddress === stored.contractAddress, 'contractAddress differs from the asset contract');
  const numbers = metadata === null ? [] : [metadata.blockNumber, metadata.transactionIndex, metadata.logIndex ?? '0'];
  assertThat(numbers.every(isUint64Text), 'blockchain_metadata contains a number out of range');
  return {
    ...toVersion(version),
    chain,
    id: toUuidText(record.id),
    type,
    contractAddress,
    indexedAt,
    blockchainMetadata: metadata && {
      transactionHash: toHexText(metadata.transactionHash),
      blockNumber: metadata.blockNumber,
      transactionIndex: metadata.transactionIndex,
      logIndex: metadata.logIndex,
    },
    details: stored.text,
    traceId,
  };
}

/** @throws RangeError, like `toActivityRow` */
export function toTokenRow(record: TokenRecord, version: LoggedVersion): TokenRow {
  const { chain, decimals, verificationStatus, rootContractAddress: root } = record;
  assertThat(isChainName(chain), 'chain is not a valid chain name');
  assertThat(isOneOf(VERIFICATION_STATUSES, verificationStatus), 'verification_status is unknown');
  assertThat(decimals === null || (decimals >= 0 && decimals <= DECIMALS_MAX), 'decimals is out of range');
  return {
    ...toVersion(version),
    chain,
    contractAddress: toHexText(record.contractAddress),
    rootContractAddress: root && toHexText(root),
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

/** Lists the constant members that an update would change. */
export function findChanged(stored: ActivityConstants, update: ActivityConstants): string[] {
  return (['chain', 'type', 'contractAddress', 'indexedAt'] as const).filter((name) => stored[name] !== update[name]);
}

/** Returns the row's partition in `activities`, which is the month in UTC. */
export function partOfActivity({ updatedAt }: Pick<ActivityRow, 'updatedAt'>): number {
  const date = new Date(Math.floor(updatedAt / 1_000));
  return date.getUTCFullYear() * 100 + date.getUTCMonth() + 1;
}
