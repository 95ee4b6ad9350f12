import { randomUUID } from 'node:crypto';
import {
  ACCESS_KEYS,
  type Change,
  COLLECTIONS,
  type CollectionRecord,
  createKey,
  linkCollection,
  type RecordKind,
  type RecordStore,
  SIGNABLE_KEYS,
  type SignableKeyRecord,
} from '@playline/access-keys';
import { openRedisRecords } from '@playline/access-keys/redis';
import { createUnloggedStore } from '@playline/access-keys/test';
import {
  frameRecord,
  type MintRequestRecord,
  type MintStateRecord,
  mintRequestCodec,
  mintStateCodec,
  TOPICS,
  toMintStateKey,
  toSignerKey,
} from '@playline/contracts';
import { type Producer, toPartition } from '@playline/stream';
import { openProducer, readTopic } from '@playline/stream/kafka';
import {
  openOwnStores,
  openRedisDatabase,
  openServiceProcesses,
  type RedisTarget,
  testStores,
  toRedisSettings,
  until,
} from '@playline/testkit';
import { openProcess } from '../../services/chain-api/src/test/open-process.ts';

const WRITER = new URL('../../services/activity-writer/src/main.ts', import.meta.url).pathname;
const PARTITIONS = 2;
const PREFIX = 'svcapik';

export const OWNER = `0x${'ab'.repeat(20)}`;
export const SIGNER = `0x${'51'.repeat(20)}`;

/** Processes of a chain API and an activity writer with separate topics, tables and Redis, but without a minter. */
export interface MintingSystem {
  /** Links a new collection to the environment of the secret key. The environment also has a signable key. */
  link(override?: { readonly projectId?: string; readonly environmentId?: string }): Promise<string>;
  readonly keys: { readonly demo: string; readonly other: string; readonly publishable: string };
  /** Sends a request below `/v1/chains/demo-chain/collections` with the secret key, unless `headers` contain a key. */
  call(path: string, request?: { body?: unknown; headers?: Readonly<Record<string, string>> }): Promise<Response>;
  /** Reads the mint requests in the log. */
  requests(): Promise<MintRequestRecord[]>;
  /** Publishes the result of a request in place of the minter. */
  publishState(request: MintRequestRecord, change: Partial<MintStateRecord>): Promise<void>;
  /** Queries rows from ClickHouse. */
  rows<R>(sql: string): Promise<R[]>;
  close(): Promise<void>;
}

const author = { changedBy: 'test', requestId: 'test' };

async function openRecords<R extends Change>(kind: RecordKind<R>, redis: RedisTarget) {
  const view = await openRedisRecords(kind, redis);
  return { view, store: createUnloggedStore(view, author) };
}

async function openAccess(redis: RedisTarget) {
  const access = await openRecords(ACCESS_KEYS, redis);
  const context = { store: access.store, prefix: PREFIX };
  const createKeyFor = async (projectId: string, kind: 'secret' | 'publishable') => {
    const owner = { projectId, environmentId: `${projectId}-development`, environment: 'development' } as const;
    return (await createKey(context, { ...owner, kind })).key;
  };
  const keys = {
    demo: await createKeyFor('demo', 'secret'),
    other: await createKeyFor('other', 'secret'),
    publishable: await createKeyFor('demo', 'publishable'),
  };
  const collections = await openRecords(COLLECTIONS, redis);
  const signableKeys = await openRecords(SIGNABLE_KEYS, redis);
  await signableKeys.store.change(() => {
    const owner = { projectId: 'demo', environmentId: 'demo-development', name: 'minter', sealed: 'sealed' };
    return { address: SIGNER, ...owner, state: 'live', createdAt: 1 } satisfies Omit<
      SignableKeyRecord,
      'revision' | 'changedAt' | 'changedBy' | 'requestId'
    >;
  });
  const close = () => Promise.all([access.view, collections.view, signableKeys.view].map((view) => view.close()));
  return { keys, collections: collections.store, close };
}

/** @param settings environment variables of the chain API that override the test defaults */
export async function startMinting(settings: Record<string, string> = {}): Promise<MintingSystem> {
  const stores = await openOwnStores({ partitions: PARTITIONS });
  const redis = await openRedisDatabase();
  const access = await openAccess(redis.target);
  const environment = { ...stores.environment, ...toRedisSettings(redis.target) };
  const writers = openServiceProcesses(WRITER, {
    ...environment,
    LOG_LEVEL: 'warn',
    SESSION_TIMEOUT_MS: '2000',
    BLOCK_AGE_MAX_MS: '250',
    CONSUMER_GROUP: `${stores.prefix}writer`,
  });
  await writers.start();
  const api = await openProcess({
    ...environment,
    RATE_LIMIT_CALLS: '1000000',
    ACTIVITY_PARTITIONS: String(PARTITIONS),
    ...settings,
  });
  const topic = stores.prefix + TOPICS.mintStates.name;
  const producer = await openProducer({ brokers: testStores().kafka, clientId: 'test', topics: [topic] });
  const system: MintingSystem = {
    keys: access.keys,
    link: createLink(access.collections),
    call: createCall(api.url, access.keys.demo),
    requests: async () => {
      const name = stores.prefix + TOPICS.mintRequests.name;
      const records = await readTopic({ brokers: testStores().kafka, topic: name });
      return records.map(({ value }) => mintRequestCodec.decode(value!.subarray(5)));
    },
    publishState: (request, change) =>
      publishMintState({ producer, topic, schemaId: stores.schemaIdOf(topic) }, request, change),
    rows: async <R>(sql: string) => {
      const text = await stores.query(`${sql} FORMAT JSONEachRow`);
      return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as R]));
    },
    close: async () => {
      await Promise.all([api.close(), writers.close()]);
      await Promise.all([producer.close(), access.close()]);
      await Promise.all([redis.close(), stores.close()]);
    },
  };
  const isReady = async () => (await api.notReady()).length === 0 && (await redis.client.get('mint:complete')) !== null;
  await until('mints are accepted', isReady).catch(async (fault) => {
    await system.close();
    throw fault;
  });
  return system;
}

function createLink(store: RecordStore<CollectionRecord>): MintingSystem['link'] {
  let linked = 0;
  return async (override = {}) => {
    const contractAddress = `0x${(++linked).toString(16).padStart(40, '0')}`;
    const owner = { projectId: 'demo', environmentId: 'demo-development', ...override };
    await linkCollection({ store }, { chain: 'demo-chain', contractAddress, ...owner, name: 'c' });
    return contractAddress;
  };
}

function createCall(url: string, secretKey: string): MintingSystem['call'] {
  return (path, { body, headers = {} } = {}) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    return fetch(`${url}/v1/chains/demo-chain/collections${path}`, {
      ...(body === undefined ? {} : { method: 'POST', body: text }),
      headers: { 'content-type': 'application/json', 'x-service-api-key': secretKey, ...headers },
    });
  };
}

async function publishMintState(
  { producer, topic, schemaId }: { producer: Producer; topic: string; schemaId: number },
  request: MintRequestRecord,
  change: Partial<MintStateRecord>,
): Promise<void> {
  const state: MintStateRecord = {
    ...request,
    revision: 1,
    status: 'pending',
    stage: 'accepted',
    reason: null,
    nonce: null,
    transactionHash: null,
    activityId: null,
    error: null,
    requestPartition: 0,
    requestOffset: 0,
    changedAt: Date.now(),
    ...change,
  };
  const partition = toPartition(Buffer.from(toSignerKey(request)), PARTITIONS);
  const value = frameRecord(schemaId, mintStateCodec.encode(state));
  await producer.sendForOffset({ topic, partition, key: Buffer.from(toMintStateKey(state)), value });
}

/** Creates an asset with a new reference id. */
export const createAsset = (fields: object = {}) => ({ reference_id: randomUUID(), owner_address: OWNER, ...fields });

/** The status, code and details of an error response. */
export interface ErrorResponse {
  readonly status: number;
  readonly code: string;
  readonly details: { readonly errors?: readonly { readonly field: string }[]; readonly limitBytes?: number } | null;
}

export async function readError(response: Response): Promise<ErrorResponse> {
  const { code, details } = (await response.json()) as Omit<ErrorResponse, 'status'>;
  return { status: response.status, code, details };
}
