import { type CollectionRecord, collectionIdOf, findSigner, type SignableKeyRecord } from '@playline/access-keys';
import type { MintRequestRecord } from '@playline/contracts';
import {
  createAcceptMints,
  isOwnedBy,
  type MintAsset,
  type MintClaims,
  type MintCollection,
  type MintState,
  type Quotas,
} from '@playline/mints';

export interface RetryParts {
  readonly claims: MintClaims;
  readonly collections: readonly CollectionRecord[];
  readonly signableKeys: readonly SignableKeyRecord[];
  readonly publish: (records: readonly MintRequestRecord[]) => Promise<void>;
  readonly traceId: string;
}

/** A retry by an operator counts against no quota. */
const UNLIMITED: Quotas = { take: async () => ({ isAllowed: true, remaining: 0, fullInMs: 0, retryAfterS: 0 }) };
const POLICY = { kind: 'mint', perSecond: 1, burst: 1 } as const;

/** Why an asset that has not failed is not accepted again. */
export const toNotFailed = ({ status, tokenId }: MintState) =>
  `${status === 'pending' ? 'it is pending' : `it has succeeded and is token ${tokenId}`}: only what has failed is accepted again`;

const toOwnerWords = (state: MintState, linked: CollectionRecord) =>
  `it was asked for by ${state.environmentId} of the project ${state.projectId}, and the collection is linked by ` +
  `${linked.environmentId} of the project ${linked.projectId} now: nothing was accepted`;

/**
 * Accepts a failed asset again, as the interface does, with the current signing key.
 * @throws Error when it has not failed, its collection is not linked, or linked by another environment than the one
 * that requested it, or there is no signing key; PublicError CONFLICT_ERROR when another request was faster
 */
export async function retryMint(parts: RetryParts, state: MintState & Pick<MintAsset, 'metadata'>): Promise<void> {
  const { claims, collections, signableKeys, publish, traceId } = parts;
  if (state.status !== 'failed') throw new Error(toNotFailed(state));
  const collection: MintCollection = { chain: state.chain, contractAddress: state.contractAddress };
  const id = collectionIdOf(collection);
  const linked = collections.find((record) => record.id === id && record.state === 'linked');
  if (linked === undefined) throw new Error('no project has linked the collection: npm run collections -- relink');
  // Otherwise the current environment would pay for and sign what it did not request and cannot see.
  if (!isOwnedBy(state, linked)) throw new Error(toOwnerWords(state, linked));
  const signer = findSigner(signableKeys, linked.environmentId);
  if (signer === undefined)
    throw new Error(`no key signs for ${linked.environmentId}: npm run keys -- create --kind signable makes one`);
  const { projectId, environmentId } = linked;
  const accept = createAcceptMints({
    claims,
    quotas: UNLIMITED,
    policy: POLICY,
    publish,
    // An attempt with an unknown result is not decided here: its requester asks again.
    isLogKnown: async () => false,
  });
  const requireSigner = async () => signer.address;
  await accept({ collection, projectId, environmentId, requireSigner, traceId, assets: [state] });
}
