import { generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { createRecordStore, createSignableKey, SIGNABLE_KEYS, type SignableKeyRecord } from '@playline/access-keys';
import { openRedisRecords } from '@playline/access-keys/redis';
import { parseSignerKeys } from '@playline/access-keys/signer';
import { createMemoryRecordLog } from '@playline/access-keys/test';
import {
  frameRecord,
  type MintRequestRecord,
  type MintStateRecord,
  mintRequestCodec,
  mintStateCodec,
  TOPICS,
  toSignerKey,
} from '@playline/contracts';
import { openProducer, readTopic } from '@playline/stream/kafka';
import {
  type OwnStores,
  openOwnStores,
  openRedisDatabase,
  openServiceProcesses,
  type RedisDatabase,
  type ServiceProcess,
  type ServiceProcesses,
  type Stores,
  testStores,
  until,
} from '@playline/testkit';
import { CONTRACT_ABIS, openTestChain, type TestChain } from '@playline/testkit/chain';
import { toBytes, toRequest } from './mint-requests.ts';

const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url));
/** The node's epoch length, long enough that reorganisations never replace final blocks. */
const EPOCH_BLOCKS = 8;
/** Time after which a killed minter's partitions are reassigned. */
const SESSION_TIMEOUT_MS = 3_000;

/** Minter processes, real brokers, and a real node with the demo contracts. */
export interface Minting {
  readonly chain: TestChain;
  readonly contracts: Awaited<ReturnType<TestChain['deployDemo']>>;
  readonly key: SignableKeyRecord;
  readonly stores: OwnStores;
  start(settings?: Readonly<Record<string, string>>): Promise<ServiceProcess>;
  setState(state: 'live' | 'disabled'): Promise<void>;
  publish(requests: readonly (Partial<MintRequestRecord> & { contract: string; referenceId: string })[]): Promise<void>;
  states(): Promise<readonly MintStateRecord[]>;
  /** Waits until there are exactly this many attempts and all are settled. */
  settled(count: number): Promise<readonly MintStateRecord[]>;
  /** Returns `contract tokenId owner amount` for each mint on the chain, sorted. */
  tokens(): Promise<readonly string[]>;
  close(): Promise<void>;
}

export async function openMinting({ stores: real = testStores() }: { stores?: Stores } = {}): Promise<Minting> {
  const [stores, redis] = [await openOwnStores({ stores: real }), await openRedisDatabase(real.redis)];
  const chain = await openTestChain({ mining: 'needed', epochBlocks: EPOCH_BLOCKS, blockMs: 100 });
  const signerKeys = makeSignerKeys();
  const keys = await openKeys(redis, signerKeys);
  const contracts = await chain.deployDemo(keys.record.address as `0x${string}`);
  const node = { name: 'demo-chain', id: `eip155:${chain.id}`, urls: [chain.rpc], pollMs: 100 };
  const processes = openServiceProcesses(MAIN, {
    ...stores.environment,
    REDIS_URL: redis.url,
    SIGNER_KEYS: signerKeys,
    LOG_LEVEL: 'error',
    CHAIN_NODES: JSON.stringify([{ ...node, stuckAfterS: 5, resendEveryS: 1 }]),
    CONSUMER_GROUP: `minter-${randomBytes(4).toString('hex')}`,
    SESSION_TIMEOUT_MS: String(SESSION_TIMEOUT_MS),
  });
  return toMinting({ kafka: real.kafka, stores, redis, chain, contracts, keys, processes });
}

interface MintingParts extends Pick<Minting, 'stores' | 'chain' | 'contracts'> {
  readonly kafka: string[];
  readonly redis: RedisDatabase;
  readonly keys: Awaited<ReturnType<typeof openKeys>>;
  readonly processes: ServiceProcesses;
}

async function toMinting({ kafka, stores, redis, chain, contracts, keys, processes }: MintingParts): Promise<Minting> {
  const topic = stores.prefix + TOPICS.mintRequests.name;
  const producer = await openProducer({ brokers: kafka, clientId: 'test', topics: [topic] });
  const states = () => readStates(kafka, stores.prefix);
  const signer = toBytes(keys.record.address);
  return {
    chain,
    contracts,
    key: keys.record,
    stores,
    setState: keys.setState,
    states,
    start: (settings) => processes.start(settings),
    publish: async (requests) => {
      for (const { referenceId, ...fields } of requests) {
        const attemptId = toBytes(`0x${randomUUID().replaceAll('-', '')}`);
        const request = toRequest(referenceId, { ...fields, signer, attemptId, requestedAt: Date.now() });
        const value = frameRecord(stores.schemaIdOf(topic), mintRequestCodec.encode(request));
        await producer.sendForOffset({ topic, key: Buffer.from(toSignerKey(request)), value });
      }
    },
    settled: (count) =>
      until(`${count} attempts are settled`, async () => {
        const all = await states();
        const isDone = all.length === count && all.every(({ status }) => status !== 'pending');
        if (isDone) return all;
        const open = all.filter(({ status }) => status === 'pending');
        const message = open.map(({ referenceId, stage, nonce, reason }) =>
          [referenceId, stage, nonce, reason].join(' '),
        );
        throw new Error(`${all.length} attempts, ${open.length} pending: ${message.slice(0, 5).join('; ')}`);
      }),
    tokens: () => tokensOf(chain, contracts),
    close: async () => {
      await processes.close();
      await Promise.all([producer.close(), keys.close(), chain.close()]);
      await Promise.all([stores.close(), redis.close()]);
    },
  };
}

function makeSignerKeys(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return JSON.stringify([privateKey.export({ format: 'jwk' })]);
}

async function openKeys(redis: RedisDatabase, signerKeys: string) {
  const view = await openRedisRecords(SIGNABLE_KEYS, { url: redis.url });
  const log = createMemoryRecordLog<SignableKeyRecord>();
  const store = createRecordStore({ view, log }, { changedBy: 'test', requestId: 'test' });
  const signerKey = parseSignerKeys(signerKeys)[0]!.publicKey;
  const wanted = { projectId: 'demo', environmentId: 'demo-development', name: 'Minter' };
  const record = await createSignableKey({ store, signerKey }, wanted);
  return {
    record,
    setState: async (state: 'live' | 'disabled') => void (await store.change(([one]) => ({ ...one!, state }))),
    close: () => view.close(),
  };
}

async function readStates(brokers: string[], prefix: string): Promise<readonly MintStateRecord[]> {
  const records = await readTopic({ brokers, topic: prefix + TOPICS.mintStates.name });
  const last = new Map(records.map(({ key, value }) => [String(key), mintStateCodec.decode(value!.subarray(5))]));
  return [...last.values()];
}

const ZERO_ADDRESS = `0x${'0'.repeat(40)}` as const;
const line = (...parts: readonly unknown[]) => parts.join(' ').toLowerCase();

async function tokensOf({ client }: TestChain, { erc721, erc1155 }: Minting['contracts']): Promise<string[]> {
  const range = { fromBlock: 0n, toBlock: 'latest' } as const;
  const from = { args: { from: ZERO_ADDRESS }, ...range };
  const one = { address: erc721, abi: CONTRACT_ABIS['demo-erc721'], eventName: 'Transfer', ...from } as const;
  const many = { address: erc1155, abi: CONTRACT_ABIS['demo-erc1155'], ...from } as const;
  const transfers = await client.getContractEvents(one);
  const singles = await client.getContractEvents({ ...many, eventName: 'TransferSingle' });
  const batches = await client.getContractEvents({ ...many, eventName: 'TransferBatch' });
  return [
    ...transfers.map(({ args }) => line(erc721, args.tokenId, args.to, 1)),
    ...singles.map(({ args }) => line(erc1155, args.id, args.to, args.value)),
    ...batches.flatMap(({ args }) => args.ids!.map((id, at) => line(erc1155, id, args.to, args.values![at]))),
  ].sort();
}

export function toTokens(states: readonly MintStateRecord[]): readonly string[] {
  const succeeded = states.filter(({ status }) => status === 'succeeded');
  return succeeded
    .map(({ contractAddress, tokenId, ownerAddress, amount }) =>
      line(`0x${contractAddress.toString('hex')}`, tokenId, `0x${ownerAddress.toString('hex')}`, amount ?? '1'),
    )
    .sort();
}
