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
   * @throws PublicError RESOURCE_NOT_FOUND when not linked, AUTHENTICATION_ERROR for another owner; any other error
   * when neither the copy nor Redis can answer
   */
  require(contract: MintCollection, key: Pick<KeyRecord, 'projectId' | 'environmentId'>): Promise<CollectionRecord>;
  /** The oldest live signing key. @throws PublicError VALIDATION_ERROR without one */
  requireSigner(environmentId: string): Promise<string>;
  /** As far as this process knows. */
  isLinked(contract: MintCollection): boolean;
}

/** In memory; queries Redis only for unknown records and old copies. */
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
      if (record.projectId !== projectId) throw refused('The collection belongs to another project than the key.');
      if (record.environmentId !== environmentId)
        throw refused('The collection belongs to another environment of this project than the key.');
      return record;
    },
    requireSigner: async (environmentId) => {
      const find = () => findSigner(signableKeys.records, environmentId);
      const key = await findFresh(signableKeys, find);
      if (key !== undefined) return key.address;
      const message =
        'No key signs for this environment: create a signable key in the portal, under Keys, and give its address the role that mints.';
      throw new PublicError('VALIDATION_ERROR', { message, details: { environment: environmentId } });
    },
  };
}

/** Otherwise the copy is refreshed first, so that a new link counts. */
async function findFresh<R, T>(copy: Copy<R>, find: () => T | undefined): Promise<T | undefined> {
  const known = find();
  if (known !== undefined && copy.isTrusted) return known;
  try {
    await copy.refresh();
  } catch (fault) {
    if (known === undefined || !copy.isTrusted) throw fault;
  }
  return find();
}

const refused = (message: string) => new PublicError('AUTHENTICATION_ERROR', { message });
