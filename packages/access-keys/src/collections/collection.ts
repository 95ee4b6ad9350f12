// Collections: contracts that are linked to projects.
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
import { type Content, type RecordStore, toName } from '../records/record-store.ts';

export type { CollectionRecord } from '@playline/contracts';

/** Collections, one record per contract. Each contract is linked to at most one project. */
export const COLLECTIONS: RecordKind<CollectionRecord> = {
  name: 'collections',
  topic: TOPICS.collections.name,
  codec: collectionCodec,
  idOf: ({ id }) => id,
};

export interface Contract {
  /** Chain name, as used in API paths. */
  readonly chain: string;
  /** `0x` and 40 hexadecimal digits, in lower case after parsing. */
  readonly contractAddress: string;
}

/** @throws PublicError VALIDATION_ERROR for an invalid contract */
export function parseContract({ chain, contractAddress }: Contract): Contract {
  if (!isChainName(chain)) throw invalid('A chain name has 1 to 64 characters (a-z, 0-9, -), such as demo-chain.');
  const address = parseAddress(contractAddress.trim());
  if (address === null)
    throw invalid(`A contract address must be ${ADDRESS_EXPECTED}. Copy the address from the chain's block explorer.`);
  return { chain, contractAddress: address };
}

export const collectionIdOf = ({ chain, contractAddress }: Contract): string => `${chain}:${contractAddress}`;

/** Returns the project's linked and unlinked collections, oldest first. */
export const collectionsOf = (records: readonly CollectionRecord[], projectId: string): readonly CollectionRecord[] =>
  records.filter((record) => record.projectId === projectId).toSorted((a, b) => a.createdAt - b.createdAt);

/** Returns the collections that are linked to an environment, oldest first. */
export const linkedCollectionsOf = (records: readonly CollectionRecord[], environmentId: string) =>
  records
    .filter((record) => record.environmentId === environmentId && record.state === 'linked')
    .toSorted((a, b) => a.createdAt - b.createdAt);

const CLOCK_SKEW_MAX_MS = 2_000;

/** A project's request for one of its collections. */
export interface CollectionRequest extends Contract, Pick<CollectionRecord, 'projectId'> {
  readonly requestedAt: number;
}

/**
 * Returns a function that checks whether a contract no longer belongs to the requesting project. The function returns
 * false while the copy may be older than the request.
 */
export function createIsUnlinked(
  copy: Pick<RecordCopy<CollectionRecord>, 'records' | 'ageMs'>,
  wallClockMs: () => number = Date.now,
): (requested: CollectionRequest) => boolean {
  let indexed: readonly CollectionRecord[] | null = null;
  let byId = new Map<string, CollectionRecord>();
  return ({ projectId, requestedAt, chain, contractAddress }) => {
    if (wallClockMs() - copy.ageMs < requestedAt + CLOCK_SKEW_MAX_MS) return false;
    if (indexed !== copy.records) {
      indexed = copy.records;
      byId = new Map(indexed.map((record) => [record.id, record]));
    }
    const record = byId.get(collectionIdOf({ chain, contractAddress }));
    return record !== undefined && (record.state === 'unlinked' || record.projectId !== projectId);
  };
}

const invalid = (message: string) => new PublicError('VALIDATION_ERROR', { message });

/** Returns whether a contract has code; null if its chain has no nodes, so that it cannot be checked. */
export type ReadCode = (contract: Contract) => Promise<boolean | null>;

export interface CollectionContext {
  readonly store: RecordStore<CollectionRecord>;
  /** Null or absent if the served chains are unknown; every chain is accepted in this case. */
  readonly servedChains?: readonly string[] | null;
  readonly readCode?: ReadCode;
}

/** The caller must check that the project and the environment exist. */
interface Owner {
  readonly projectId: string;
  readonly environmentId: string;
}

export interface CollectionName extends Contract {
  readonly projectId: string;
}

/**
 * @throws PublicError VALIDATION_ERROR for an invalid contract, name or chain, or for an address without code;
 * CONFLICT_ERROR for a linked contract, or if no node of the chain responds
 */
export async function linkCollection(
  context: CollectionContext,
  wanted: Contract & Owner & { readonly name: string },
): Promise<CollectionRecord> {
  const contract = parseContract(wanted);
  const [id, name] = [collectionIdOf(contract), toName(wanted.name, 'a collection')];
  const { projectId, environmentId } = wanted;
  await assertServedCode(contract, context);
  return context.store.change((records) => {
    const current = records.find((record) => record.id === id);
    if (current?.state === 'linked') throw current.projectId === projectId ? linkedHere() : linkedElsewhere();
    return { ...contract, id, projectId, environmentId, name, state: 'linked', createdAt: Date.now() };
  });
}

/** @throws PublicError see `linkCollection`; RESOURCE_NOT_FOUND if the project does not have the collection */
export async function renameCollection(
  context: CollectionContext,
  { name, ...collection }: CollectionName & { readonly name: string },
): Promise<CollectionRecord> {
  const newName = toName(name, 'a collection');
  return changeProjectCollection(context, collection, (record) => ({ ...record, name: newName }));
}

/** Ends the project's pending mints. @throws PublicError RESOURCE_NOT_FOUND, CONFLICT_ERROR if already unlinked */
export function unlinkCollection(context: CollectionContext, collection: CollectionName): Promise<CollectionRecord> {
  return changeProjectCollection(context, collection, (record) => {
    if (record.state === 'unlinked') throw conflict('The collection is already unlinked.');
    return { ...record, state: 'unlinked' };
  });
}

/**
 * Relinks one of the project's unlinked collections, or moves a collection to another of the project's environments.
 * @throws PublicError see `linkCollection`; RESOURCE_NOT_FOUND for another project's collection; CONFLICT_ERROR if already
 * linked here
 */
export async function relinkCollection(
  context: CollectionContext,
  { environmentId, ...collection }: CollectionName & Owner,
): Promise<CollectionRecord> {
  await assertServedCode(parseContract(collection), context);
  return changeProjectCollection(context, collection, (record) => {
    if (record.state === 'linked' && record.environmentId === environmentId) throw linkedHere();
    return { ...record, environmentId, state: 'linked' };
  });
}

/**
 * Lets administrators move a collection to another project. Ends the previous project's pending mints.
 * @throws PublicError VALIDATION_ERROR see `linkCollection`, RESOURCE_NOT_FOUND if no project has linked the contract,
 * CONFLICT_ERROR if the contract is already linked to this environment
 */
export async function moveCollection(
  context: CollectionContext,
  { projectId, environmentId, ...wanted }: CollectionName & Owner,
): Promise<CollectionRecord> {
  const contract = parseContract(wanted);
  await assertServedCode(contract, context);
  return context.store.change((records) => {
    const record = records.find(({ id }) => id === collectionIdOf(contract));
    if (record === undefined)
      throw new PublicError('RESOURCE_NOT_FOUND', { message: 'No project has linked this contract. Link it instead.' });
    if (record.state === 'linked' && record.environmentId === environmentId) throw linkedHere();
    return { ...record, projectId, environmentId, state: 'linked' };
  });
}

/** @throws PublicError see `linkCollection` */
async function assertServedCode(contract: Contract, { servedChains, readCode }: CollectionContext): Promise<void> {
  const { chain, contractAddress } = contract;
  if (servedChains != null && !servedChains.includes(chain))
    throw invalid(
      `The chain ${JSON.stringify(chain)} is not served. Served chains: ${servedChains.join(', ') || 'none'}.`,
    );
  const hasCode = await readCode?.(contract).catch((cause: unknown) => {
    const message = `The contract could not be checked, because no node of ${chain} responds. Try again later.`;
    throw new PublicError('CONFLICT_ERROR', { message, cause });
  });
  if (hasCode === false)
    throw invalid(`There is no contract at ${contractAddress} on ${chain}. Check the address and the chain.`);
}

async function changeProjectCollection(
  { store }: CollectionContext,
  { projectId, ...wanted }: CollectionName,
  change: (record: CollectionRecord) => Content<CollectionRecord>,
): Promise<CollectionRecord> {
  const id = collectionIdOf(parseContract(wanted));
  return store.change((records) => {
    const record = records.find((each) => each.id === id);
    // Only linkCollection may reveal that another project has the contract.
    if (record !== undefined && record.projectId === projectId) return change(record);
    throw new PublicError('RESOURCE_NOT_FOUND', { message: 'This project does not have the contract. Link it first.' });
  });
}

const conflict = (message: string) => new PublicError('CONFLICT_ERROR', { message });
const linkedHere = () => conflict('This project has already linked the contract.');
/** Does not reveal which project has linked the contract. */
const linkedElsewhere = () =>
  conflict(
    'Another project has already linked this contract. If you own the contract, have an administrator of this installation move it to your project.',
  );
