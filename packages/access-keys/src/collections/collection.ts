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
import { type Content, type RecordStore, toDone, toName } from '../records/record-store.ts';

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

export interface CollectionContext {
  readonly store: RecordStore<CollectionRecord>;
  /** Names of the chains that are served. Null, or absent: they are not known, and every chain is accepted. */
  readonly servedChains?: readonly string[] | null;
}

/** A project and its environment. The caller has made sure that they exist. */
interface Owner {
  readonly projectId: string;
  readonly environmentId: string;
}

/** Names a collection of a project. One of another project is not found. */
export interface CollectionName extends Contract {
  readonly projectId: string;
}

/**
 * Links a contract to a project.
 * @throws PublicError VALIDATION_ERROR for an invalid contract or name or a chain that is not served, CONFLICT_ERROR when
 * the contract is linked already; it does not name the other project
 */
export async function linkCollection(
  { store, servedChains }: CollectionContext,
  wanted: Contract & Owner & { readonly name: string },
): Promise<CollectionRecord> {
  const contract = parseContract(wanted);
  assertServed(contract, servedChains);
  const [id, name] = [collectionIdOf(contract), toName(wanted.name, 'a collection')];
  const { projectId, environmentId } = wanted;
  const linked = await store.change((records) => {
    const standing = records.find((record) => record.id === id);
    if (standing?.state === 'linked') throw standing.projectId === projectId ? linkedHere() : linkedElsewhere();
    return { ...contract, id, projectId, environmentId, name, state: 'linked', createdAt: Date.now() };
  });
  return toDone(linked);
}

/**
 * Renames a collection. @throws PublicError as `linkCollection`, RESOURCE_NOT_FOUND when the project does not have it
 */
export async function renameCollection(
  context: CollectionContext,
  { name, ...collection }: CollectionName & { readonly name: string },
): Promise<CollectionRecord> {
  const given = toName(name, 'a collection');
  return changeOwn(context, collection, (record) => ({ ...record, name: given }));
}

/**
 * Unlinks a contract from a project. Any project may link it afterwards, and pending mints of this project end.
 * @throws PublicError RESOURCE_NOT_FOUND where the project has none, CONFLICT_ERROR when it is unlinked already
 */
export function unlinkCollection(context: CollectionContext, collection: CollectionName): Promise<CollectionRecord> {
  return changeOwn(context, collection, (record) => {
    if (record.state === 'unlinked') throw conflict('The collection is unlinked already.');
    return { ...record, state: 'unlinked' };
  });
}

/**
 * Links an unlinked collection of the project again, with its former name, or moves it to another environment of the
 * project.
 * @throws PublicError RESOURCE_NOT_FOUND where the project has none, also when somebody else has linked it since;
 * CONFLICT_ERROR when it is linked to this environment already
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
 * Moves a collection from its current project to another one. Only for administrators of the installation: pending mints of
 * the former project end, and its reference ids stay its own.
 * @throws PublicError VALIDATION_ERROR as `linkCollection`, RESOURCE_NOT_FOUND when no project has ever linked the
 * contract, CONFLICT_ERROR when it is linked to this environment already
 */
export async function moveCollection(
  { store, servedChains }: CollectionContext,
  { projectId, environmentId, ...wanted }: CollectionName & Owner,
): Promise<CollectionRecord> {
  const contract = parseContract(wanted);
  assertServed(contract, servedChains);
  const moved = await store.change((records) => {
    const record = records.find(({ id }) => id === collectionIdOf(contract));
    if (record === undefined)
      throw new PublicError('RESOURCE_NOT_FOUND', { message: 'No project has linked this contract: link it instead.' });
    if (record.state === 'linked' && record.environmentId === environmentId) throw linkedHere();
    return { ...record, projectId, environmentId, state: 'linked' };
  });
  return toDone(moved);
}

/** @throws PublicError VALIDATION_ERROR for a chain that is not served: nothing would ever be minted or indexed there */
function assertServed({ chain }: Contract, servedChains: CollectionContext['servedChains']): void {
  if (servedChains == null || servedChains.includes(chain)) return;
  const served = servedChains.length === 0 ? 'none' : servedChains.join(', ');
  const message = `The chain ${JSON.stringify(chain)} is not served here. Served chains: ${served}.`;
  throw new PublicError('VALIDATION_ERROR', { message });
}

async function changeOwn(
  { store }: CollectionContext,
  { projectId, ...wanted }: CollectionName,
  change: (record: CollectionRecord) => Content<CollectionRecord>,
): Promise<CollectionRecord> {
  const id = collectionIdOf(parseContract(wanted));
  const changed = await store.change((records) => {
    const record = records.find((each) => each.id === id);
    // That another project has it is disclosed only when somebody tries to link it.
    if (record !== undefined && record.projectId === projectId) return change(record);
    throw new PublicError('RESOURCE_NOT_FOUND', { message: 'This project has no such collection: link it first.' });
  });
  return toDone(changed);
}

const conflict = (message: string) => new PublicError('CONFLICT_ERROR', { message });
const linkedHere = () => conflict('This project has linked the contract already.');
/** The same text for any other project. */
const linkedElsewhere = () =>
  conflict(
    'Another project has linked this contract already. If the contract is yours, ask an administrator of this installation to move it to your project.',
  );
