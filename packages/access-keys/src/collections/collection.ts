import {
  ADDRESS_EXPECTED,
  type CollectionRecord,
  collectionCodec,
  isChainName,
  parseAddress,
  TOPICS,
} from '@playline/contracts';
import { PublicError } from '@playline/errors';
import type { RecordCopy } from '../records/record-copy.ts';
import type { RecordKind } from '../records/record-log.ts';

export type { CollectionRecord } from '@playline/contracts';

/**
 * Contracts on chains, each linked to one project at most. A contract has one record, also when it changes projects.
 */
export const COLLECTIONS: RecordKind<CollectionRecord> = {
  name: 'collections',
  topic: TOPICS.collections.name,
  codec: collectionCodec,
  idOf: ({ id }) => id,
};

/** A contract on a chain. */
export interface Contract {
  /** Name of the chain, as in paths of the interface. */
  readonly chain: string;
  /** `0x` and 40 hexadecimal digits; lower case once it is parsed. */
  readonly contractAddress: string;
}

/** @throws PublicError VALIDATION_ERROR for an invalid contract */
export function parseContract({ chain, contractAddress }: Contract): Contract {
  if (!isChainName(chain)) throw invalid('The name of a chain has 1 to 64 of a-z, 0-9 and -, such as demo-chain.');
  const address = parseAddress(contractAddress.trim());
  if (address === null)
    throw invalid(`The address of a contract is ${ADDRESS_EXPECTED}. Copy it from the block explorer of the chain.`);
  return { chain, contractAddress: address };
}

/** The id of a contract's record. */
export function collectionIdOf({ chain, contractAddress }: Contract): string {
  return `${chain}:${contractAddress}`;
}

/** The collections of a project, oldest first. Includes those that it unlinked, until another project links them. */
export function collectionsOf(records: readonly CollectionRecord[], projectId: string): readonly CollectionRecord[] {
  return records.filter((record) => record.projectId === projectId).toSorted((a, b) => a.createdAt - b.createdAt);
}

/** More than clocks of servers differ. */
const CLOCKS_APART_MS = 2_000;

/** What a project has requested of one of its collections. */
export interface RequestedOf extends Contract, Pick<CollectionRecord, 'projectId'> {
  /** Epoch milliseconds. */
  readonly requestedAt: number;
}

/**
 * Creates the check whether a contract no longer belongs to the project that requested something of it. False while the
 * copy may be older than the request, which may have been accepted right after the contract was linked.
 */
export function createIsUnlinked(
  copy: Pick<RecordCopy<CollectionRecord>, 'records' | 'ageMs'>,
  wallClockMs: () => number = Date.now,
): (requested: RequestedOf) => boolean {
  let known: readonly CollectionRecord[] | null = null;
  let byId = new Map<string, CollectionRecord>();
  return ({ projectId, requestedAt, chain, contractAddress }) => {
    if (wallClockMs() - copy.ageMs < requestedAt + CLOCKS_APART_MS) return false;
    if (known !== copy.records) {
      known = copy.records;
      byId = new Map(known.map((record) => [record.id, record]));
    }
    const record = byId.get(collectionIdOf({ chain, contractAddress }));
    return record !== undefined && (record.state === 'unlinked' || record.projectId !== projectId);
  };
}

const invalid = (message: string) => new PublicError('VALIDATION_ERROR', { message });
