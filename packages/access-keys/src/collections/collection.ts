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

/** One record for each contract, which is linked to at most one project. */
export const COLLECTIONS: RecordKind<CollectionRecord> = {
  name: 'collections',
  topic: TOPICS.collections.name,
  codec: collectionCodec,
  idOf: ({ id }) => id,
};

export interface Contract {
  /** As in paths of the API. */
  readonly chain: string;
  /** `0x` and 40 hexadecimal digits; lower case once parsed. */
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

export const collectionIdOf = ({ chain, contractAddress }: Contract): string => `${chain}:${contractAddress}`;

/** The oldest first, with unlinked ones that no other project has linked. */
export const collectionsOf = (records: readonly CollectionRecord[], projectId: string): readonly CollectionRecord[] =>
  records.filter((record) => record.projectId === projectId).toSorted((a, b) => a.createdAt - b.createdAt);

const CLOCKS_APART_MS = 2_000;

/** A request of a project for one of its collections. */
export interface RequestedOf extends Contract, Pick<CollectionRecord, 'projectId'> {
  readonly requestedAt: number;
}

/**
 * Creates the check whether a contract no longer belongs to the requesting project. False while the copy may be older
 * than the request.
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

export interface CollectionContext {
  readonly store: RecordStore<CollectionRecord>;
  /** Null or absent: unknown, so every chain is accepted. */
  readonly servedChains?: readonly string[] | null;
}

/** Existing ones. */
interface Owner {
  readonly projectId: string;
  readonly environmentId: string;
}

export interface CollectionName extends Contract {
  readonly projectId: string;
}

/** @throws PublicError VALIDATION_ERROR for an invalid contract, name or chain, CONFLICT_ERROR when the contract is linked */
export async function linkCollection(
  { store, servedChains }: CollectionContext,
  wanted: Contract & Owner & { readonly name: string },
): Promise<CollectionRecord> {
  const contract = parseContract(wanted);
  assertServed(contract, servedChains);
  const [id, name] = [collectionIdOf(contract), toName(wanted.name, 'a collection')];
  const { projectId, environmentId } = wanted;
  return store.change((records) => {
    const current = records.find((record) => record.id === id);
    if (current?.state === 'linked') throw current.projectId === projectId ? linkedHere() : linkedElsewhere();
    return { ...contract, id, projectId, environmentId, name, state: 'linked', createdAt: Date.now() };
  });
}

/** @throws PublicError as `linkCollection`, RESOURCE_NOT_FOUND when the project does not have it */
export async function renameCollection(
  context: CollectionContext,
  { name, ...collection }: CollectionName & { readonly name: string },
): Promise<CollectionRecord> {
  const given = toName(name, 'a collection');
  return changeOwn(context, collection, (record) => ({ ...record, name: given }));
}

/** Pending mints of the project end. @throws PublicError RESOURCE_NOT_FOUND, CONFLICT_ERROR when it is unlinked */
export function unlinkCollection(context: CollectionContext, collection: CollectionName): Promise<CollectionRecord> {
  return changeOwn(context, collection, (record) => {
    if (record.state === 'unlinked') throw conflict('The collection is already unlinked.');
    return { ...record, state: 'unlinked' };
  });
}

/**
 * Links an unlinked collection of the project again, or moves it to another environment of the project.
 * @throws PublicError RESOURCE_NOT_FOUND, also when another project has linked it; CONFLICT_ERROR when it is linked here
 */
export function relinkCollection(
  context: CollectionContext,
  { environmentId, ...collection }: CollectionName & Owner,
): Promise<CollectionRecord> {
  assertServed(collection, context.servedChains);
  return changeOwn(context, collection, (record) => {
    if (record.state === 'linked' && record.environmentId === environmentId) throw linkedHere();
    return { ...record, environmentId, state: 'linked' };
  });
}

/**
 * Moves a collection to another project, for administrators. Pending mints of the former project end.
 * @throws PublicError VALIDATION_ERROR as `linkCollection`, RESOURCE_NOT_FOUND when no project has linked the contract,
 * CONFLICT_ERROR when it is linked to this environment
 */
export async function moveCollection(
  { store, servedChains }: CollectionContext,
  { projectId, environmentId, ...wanted }: CollectionName & Owner,
): Promise<CollectionRecord> {
  const contract = parseContract(wanted);
  assertServed(contract, servedChains);
  return store.change((records) => {
    const record = records.find(({ id }) => id === collectionIdOf(contract));
    if (record === undefined)
      throw new PublicError('RESOURCE_NOT_FOUND', { message: 'No project has linked this contract. Link it instead.' });
    if (record.state === 'linked' && record.environmentId === environmentId) throw linkedHere();
    return { ...record, projectId, environmentId, state: 'linked' };
  });
}

/** @throws PublicError VALIDATION_ERROR for a chain that is not served, where nothing would be minted or indexed */
function assertServed({ chain }: Contract, servedChains: CollectionContext['servedChains']): void {
  if (servedChains == null || servedChains.includes(chain)) return;
  const served = servedChains.length === 0 ? 'none' : servedChains.join(', ');
  const message = `The chain ${JSON.stringify(chain)} is not served. Served chains: ${served}.`;
  throw new PublicError('VALIDATION_ERROR', { message });
}

async function changeOwn(
  { store }: CollectionContext,
  { projectId, ...wanted }: CollectionName,
  change: (record: CollectionRecord) => Content<CollectionRecord>,
): Promise<CollectionRecord> {
  const id = collectionIdOf(parseContract(wanted));
  return store.change((records) => {
    const record = records.find((each) => each.id === id);
    // Only linking reveals that another project has the contract.
    if (record !== undefined && record.projectId === projectId) return change(record);
    throw new PublicError('RESOURCE_NOT_FOUND', { message: 'This project has no such collection. Link it first.' });
  });
}

const conflict = (message: string) => new PublicError('CONFLICT_ERROR', { message });
const linkedHere = () => conflict('This project has already linked the contract.');
/** The same text for any other project. */
const linkedElsewhere = () =>
  conflict(
    'Another project has already linked this contract. If the contract is yours, have an administrator of this installation move it to your project.',
  );
