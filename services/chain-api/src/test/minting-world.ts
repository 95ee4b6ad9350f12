import {
  ACCESS_KEYS,
  type AccessKeyRecord,
  type CollectionRecord,
  createKey,
  createKeyVerifier,
  openKeys,
  type RecordStore,
  type SignableKeyRecord,
} from '@playline/access-keys';
import { createMemoryStore } from '@playline/access-keys/test';
import type { ChainMetadataRecord, MintRequestRecord } from '@playline/contracts';
import { createMintCursors } from '@playline/mints';
import { createMemoryMintReader, createMemoryMints } from '@playline/mints/memory';
import type { MintingParts } from '../app.ts';
import { createCollections } from '../minting/collections.ts';

const PREFIX = 'svcapik';
export const SECRET_KEY_HEADER = 'x-service-api-key';
export const COLLECTION = `0x${'c0'.repeat(20)}`;
/** Collections that are linked by another project, by another environment of this one, and no longer by anybody. */
export const OTHER_PROJECT = `0x${'c1'.repeat(20)}`;
export const ELSEWHERE = `0x${'c2'.repeat(20)}`;
export const UNLINKED = `0x${'c3'.repeat(20)}`;
export const SIGNER = `0x${'51'.repeat(20)}`;
/** Below the collections of the demo chain. */
export const MINTS = `/${COLLECTION}/nfts/mint-requests`;
export const OWNER = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
const OF_DEMO = { projectId: 'demo', environmentId: 'demo-development' };

const change = { revision: 1, createdAt: 1, changedAt: 1, changedBy: 'test', requestId: 'test' };

export function collectionRecord(contractAddress: string, over: Partial<CollectionRecord> = {}): CollectionRecord {
  const chain = over.chain ?? 'demo-chain';
  const own = { id: `${chain}:${contractAddress}`, chain, contractAddress, name: 'Swords' };
  return { ...own, ...OF_DEMO, ...change, state: 'linked', ...over };
}

export function signableKeyRecord(address: string, over: Partial<SignableKeyRecord> = {}): SignableKeyRecord {
  return { address, ...OF_DEMO, ...change, name: 'minter', sealed: 'sealed', state: 'live', ...over };
}

/** An asset of a request body; `over` overrides its members. */
export const asset = (reference_id: string, over: object = {}) => ({ reference_id, owner_address: OWNER, ...over });

/** A body that requests assets under these ids. */
export const order = (...ids: string[]) => ({ assets: ids.map((id) => asset(id)) });

/** In-memory ports of the operations on collections; published records are in lists. */
export interface MintingWorld {
  readonly parts: MintingParts;
  readonly verifySecret: ReturnType<typeof createKeyVerifier>;
  readonly keys: RecordStore<AccessKeyRecord>;
  readonly secretKey: string;
  readonly mints: ReturnType<typeof createMemoryMints>;
  readonly reader: ReturnType<typeof createMemoryMintReader>;
  readonly collections: CollectionRecord[];
  readonly signableKeys: SignableKeyRecord[];
  readonly requests: MintRequestRecord[];
  readonly metadata: ChainMetadataRecord[];
  /** State of the brokers; `lost` stores records but answers with a fault. */
  broker: 'well' | 'away' | 'lost';
  /** Whether everything on the log was read into the claims. */
  isLogApplied: boolean;
}

export async function createMintingWorld(): Promise<MintingWorld> {
  const { view, store: keys } = createMemoryStore(ACCESS_KEYS);
  const context = { store: keys, prefix: PREFIX };
  const made = { kind: 'secret', environment: 'development', ...OF_DEMO, name: '' } as const;
  const { key: secretKey } = await createKey(context, made);
  const collections = [
    collectionRecord(COLLECTION),
    collectionRecord(OTHER_PROJECT, { projectId: 'other', environmentId: 'other-production' }),
    collectionRecord(ELSEWHERE, { environmentId: 'demo-production' }),
    collectionRecord(UNLINKED, { state: 'unlinked' }),
  ];
  const signableKeys = [signableKeyRecord(SIGNER)];
  // The clock of quotas does not advance: a slow machine would see them refilled.
  const openedAtMs = Date.now();
  const [mints, reader] = [createMemoryMints(() => openedAtMs), createMemoryMintReader()];
  const copyOf = <R>(records: readonly R[]) => ({ records, isTrusted: true, refresh: async () => {} });
  const [requests, metadata]: [MintRequestRecord[], ChainMetadataRecord[]] = [[], []];
  const createPublish =
    <T>(list: T[]) =>
    async (records: readonly T[]) => {
      if (world.broker !== 'away') list.push(...records);
      if (world.broker !== 'well') throw new Error('the brokers do not answer');
    };
  const world: MintingWorld = {
    keys,
    secretKey,
    mints,
    reader,
    collections,
    signableKeys,
    requests,
    metadata,
    broker: 'well',
    isLogApplied: false,
    verifySecret: createKeyVerifier({ keys: openKeys({ view, readEveryMs: 0 }), prefix: PREFIX, kind: 'secret' }),
    parts: {
      collections: createCollections({ collections: copyOf(collections), signableKeys: copyOf(signableKeys) }),
      claims: mints.claims,
      quotas: mints.quotas,
      reader,
      cursors: createMintCursors({ keys: [{ id: 1, secret: Buffer.alloc(32, 7) }] }),
      topics: { publishRequests: createPublish(requests), publishMetadata: createPublish(metadata) },
      isLogApplied: async () => world.isLogApplied,
    },
  };
  return world;
}
