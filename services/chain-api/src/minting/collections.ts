import {
  type CollectionRecord,
  collectionIdOf,
  findSigner,
  type KeyRecord,
  type RecordCopy,
  type SignableKeyRecord,
} from '@playline/access-keys';
import { PublicError } from '@playline/errors';
import type { MintCollection } from '@playline/mints';

type Copy<R> = Pick<RecordCopy<R>, 'records' | 'isTrusted' | 'refresh'>;

export interface Collections {
  /**
   * @throws PublicError RESOURCE_NOT_FOUND if the collection is not linked, AUTHENTICATION_ERROR if another owner has
   * linked it; another error if neither the copy nor Redis is available
   */
  require(contract: MintCollection, key: Pick<KeyRecord, 'projectId' | 'environmentId'>): Promise<CollectionRecord>;
  /** Returns the address of the oldest live signing key. @throws PublicError VALIDATION_ERROR if there is none */
  requireSigner(environmentId: string): Promise<string>;
  /** Checks only the in-memory copy. */
  isLinked(contract: MintCollection): boolean;
}

/** Reads records from memory and queries Redis only for unknown records and outdated copies. */
export function createCollections({
  collections,
  signableKeys,
}: {
  collections: Copy<CollectionRecord>;
  signableKeys: Copy<SignableKeyRecord>;
}): Collections {
  const findLinked = (contract: MintCollection) => {
    const id = collectionIdOf(contract);
    return collections.records.find((record) => record.id === id && record.state === 'linked');
  };
  return {
    isLinked: (contract) => findLinked(contract) !== undefined,
    require: async (contract, { projectId, environmentId }) => {
      const record = await findFresh(collections, () => findLinked(contract));
      if (record === undefined)
        throw new PublicError('RESOURCE_NOT_FOUND', { message: 'No project has linked this collection.' });
      if (record.projectId !== projectId) throw refused('The collection belongs to a different project than the key.');
      if (record.environmentId !== environmentId)
        throw refused('The collection belongs to a different environment than the key.');
      return record;
    },
    requireSigner: async (environmentId) => {
      const find = () => findSigner(signableKeys.records, environmentId);
      const key = await findFresh(signableKeys, find);
      if (key !== undefined) return key.address;
      const message =
        'This environment has no signing key. In the portal, create a signable key under Keys, then grant the minter role to its address.';
      throw new PublicError('VALIDATION_ERROR', { message, details: { environment: environmentId } });
    },
  };
}

/** Refreshes the copy before reporting that a record does not exist, because the record may be new. */
async function findFresh<R, T>(copy: Copy<R>, find: () => T | undefined): Promise<T | undefined> {
  const found = find();
  if (found !== undefined && copy.isTrusted) return found;
  try {
    await copy.refresh();
  } catch (fault) {
    if (found === undefined || !copy.isTrusted) throw fault;
  }
  return find();
}

const refused = (message: string) => new PublicError('AUTHENTICATION_ERROR', { message });
