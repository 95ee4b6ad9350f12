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

/**
 * Creates the check whether a contract no longer belongs to a project. False for a contract without a record: the copy
 * may not have it yet.
 */
export function createIsUnlinked(
  copy: Pick<RecordCopy<CollectionRecord>, 'records'>,
): (owned: Contract & Pick<CollectionRecord, 'projectId'>) => boolean {
  let known: readonly CollectionRecord[] | null = null;
  let byId = new Map<string, CollectionRecord>();
  return ({ projectId, ...contract }) => {
    if (known !== copy.records) {
      known = copy.records;
      byId = new Map(known.map((record) => [record.id, record]));
    }
    const record = byId.get(collectionIdOf(contract));
    return record !== undefined && (record.state === 'unlinked' || record.projectId !== projectId);
  };
}

const invalid = (message: string) => new PublicError('VALIDATION_ERROR', { message });
