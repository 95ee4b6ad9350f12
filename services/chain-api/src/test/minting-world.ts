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
/** Collections of another project and of another environment, and an unlinked collection. */
export const OTHER_PROJECT = `0x${'c1'.repeat(20)}`;
export const OTHER_ENVIRONMENT = `0x${'c2'.repeat(20)}`;
export const UNLINKED = `0x${'c3'.repeat(20)}`;
export const SIGNER = `0x${'51'.repeat(20)}`;
/** Path relative to the collections of the demo chain. */
export const MINTS = `/${COLLECTION}/nfts/mint-requests`;
export const OWNER = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
const DEMO_OWNER = { projectId: 'demo', environmentId: 'demo-development' };

const change = { revision: 1, createdAt: 1, changedAt: 1, changedBy: 'test', requestId: 'test' };

export function collectionRecord(contractAddress: string, overrides: Partial<CollectionRecord> = {}): CollectionRecord {
  const chain = overrides.chain ?? 'demo-chain';
  const collection = { id: `${chain}:${contractAddress}`, chain, contractAddress, name: 'Swords' };
  return { ...collection, ...DEMO_OWNER, ...change, state: 'linked', ...overrides };
}

export function signableKeyRecord(address: string, overrides: Partial<SignableKeyRecord> = {}): SignableKeyRecord {
  return { address, ...DEMO_OWNER, ...change, name: 'minter', sealed: 'sealed', state: 'live', ...overrides };
}

export const asset = (reference_id: string, fields: object = {}) => ({ reference_id, owner_address: OWNER, ...fields });

export const mintBody = (...ids: string[]) => ({ assets: ids.map((id) => asset(id)) });

/** In-memory stores for the operations on collections. Published records are collected in arrays. */
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
  /** With `ack-lost`, the brokers store records but never acknowledge them. */
  broker: 'up' | 'down' | 'ack-lost';
  /** True if the claims reflect the whole log. */
  isLogApplied: boolean;
}

export async function createMintingWorld(): Promise<MintingWorld> {
  const { view, store: keys } = createMemoryStore(ACCESS_KEYS);
  const context = { store: keys, prefix: PREFIX };
  const spec = { kind: 'secret', environment: 'development', ...DEMO_OWNER, name: '' } as const;
  const { key: secretKey } = await createKey(context, spec);
  const collections = [
    collectionRecord(COLLECTION),
    collectionRecord(OTHER_PROJECT, { projectId: 'other', environmentId: 'other-production' }),
    collectionRecord(OTHER_ENVIRONMENT, { environmentId: 'demo-production' }),
    collectionRecord(UNLINKED, { state: 'unlinked' }),
  ];
  const signableKeys = [signableKeyRecord(SIGNER)];
  // The quota clock does not advance, because quotas would refill on a slow machine.
  const openedAtMs = Date.now();
  const [mints, reader] = [createMemoryMints(() => openedAtMs), createMemoryMintReader()];
  const copyOf = <R>(records: readonly R[]) => ({ records, isTrusted: true, refresh: async () => {} });
  const [requests, metadata]: [MintRequestRecord[], ChainMetadataRecord[]] = [[], []];
  const createPublish =
    <T>(list: T[]) =>
    async (records: readonly T[]) => {
      if (world.broker !== 'down') list.push(...records);
      if (world.broker !== 'up') throw new Error('the brokers do not respond');
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
    broker: 'up',
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
