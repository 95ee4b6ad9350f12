import {
  COLLECTIONS,
  createIsUnlinked,
  createRecordLog,
  createRecordStore,
  openRecordCopy,
  type RecordView,
  SIGNABLE_KEYS,
  type SignableKeyRecord,
} from '@playline/access-keys';
import { openRedisRecords } from '@playline/access-keys/redis';
import { createSigner, parseSignerKeys, resealSignableKey } from '@playline/access-keys/signer';
import type { MintableChain } from '@playline/chain';
import { createRpcBatches, createRpcClient } from '@playline/chain/rpc';
import { mintStateCodec, mintTransactionCodec, schemaSubjectOf, TOPICS, toHexText } from '@playline/contracts';
import { openAdminServer } from '@playline/http';
import {
  createLogger,
  createMetrics,
  openTracing,
  parseConfig,
  runService,
  settings,
  type Tracing,
  toKafka,
  toRedis,
  toRegistry,
} from '@playline/runtime';
import { createConnectionFaults } from '@playline/stores';
import type { LogReader, Producer, SchemaRegistry } from '@playline/stream';
import {
  createSchemaRegistry,
  openAtomicPublisher,
  openDeadLetterCount,
  openLogReader,
  openProducer,
  openRecordConsumer,
} from '@playline/stream/kafka';
import { createJsonRpc, createJsonRpcBatches } from './chain/json-rpc.ts';
import { createRpcNode } from './chain/rpc-node.ts';
import { configSchema } from './config.ts';
import { createMintLog } from './log/kafka-mint-log.ts';
import { openMinter } from './pipeline.ts';
import { createKeySigner, openResealing, type ResealParts } from './signable-keys.ts';

const SERVICE = 'minter';
const NODE_TIMEOUT_MS = 10_000;
const config = parseConfig(configSchema.extend({ SIGNER_KEYS: settings.parsed(parseSignerKeys) }), process.env);
const logger = createLogger({ service: SERVICE, level: config.LOG_LEVEL });
const metrics = createMetrics(SERVICE);
const faults = createConnectionFaults(logger);
const kafka = { ...toKafka(config, logger), onFault: faults.listenerOf('Kafka') };
const topicOf = ({ name }: { name: string }) => config.TOPIC_PREFIX + name;
/** Chains are identified by name, because URLs may contain secrets. */
const toChain = ({ name, urls, finality, pollMs, ...rest }: MintableChain) => {
  const { chainId, gasMax, feeMaxWei: feeMax, priorityFeeMaxWei: priorityFeeMax, openNoncesMax, ...counts } = rest;
  const waits = { stuckAfterMs: rest.stuckAfterS * 1000, resendEveryMs: rest.resendEveryS * 1000 };
  const nodes = urls.map((url) => {
    const node = { url, timeoutMs: NODE_TIMEOUT_MS };
    const callBatch = createJsonRpcBatches(createRpcBatches(node));
    return createRpcNode({ call: createJsonRpc(createRpcClient(node)), callBatch, finality });
  });
  const { unfinalNoncesMax, assetsMax } = counts;
  const rules = { chainId, gasMax, feeMax, priorityFeeMax, openNoncesMax, unfinalNoncesMax, assetsMax, ...waits };
  return [name, { nodes, pollMs, rules }] as const;
};

interface LogParts {
  readonly registry: SchemaRegistry;
  readonly reader: LogReader;
  readonly producer: Producer;
}

function openLog({ registry, reader, tracing }: Pick<LogParts, 'registry' | 'reader'> & { tracing: Tracing | null }) {
  const topicWith = (topic: { name: string }, { schema }: { schema: string }) => ({
    name: topicOf(topic),
    schemaId: () => registry.idOf(schemaSubjectOf(topicOf(topic)), schema),
  });
  return createMintLog({
    reader,
    openPublisher: (name) => openAtomicPublisher({ ...kafka, name: config.TOPIC_PREFIX + name }),
    states: topicWith(TOPICS.mintStates, mintStateCodec),
    transactions: topicWith(TOPICS.mintTransactions, mintTransactionCodec),
    schemaOf: registry.schemaOf,
    tracing,
  });
}

/** Opens the store only when a key must be resealed, because the registry may be unavailable at startup. */
const createOpenStore =
  (view: RecordView<SignableKeyRecord>, { registry, reader, producer }: LogParts): ResealParts['openStore'] =>
  async () => {
    const topic = topicOf({ name: SIGNABLE_KEYS.topic });
    const log = createRecordLog({
      kind: SIGNABLE_KEYS,
      schemaId: await registry.idOf(schemaSubjectOf(topic), SIGNABLE_KEYS.codec.schema),
      schemaOf: registry.schemaOf,
      bounds: () => reader.bounds(topic),
      read: (range) => reader.read({ topic, ...range }),
      send: (record) => producer.sendForOffset({ topic, ...record }),
    });
    return createRecordStore({ view, log }, { changedBy: SERVICE, requestId: '' });
  };

await runService(logger, async (use) => {
  const tracing = await openTracing(use, { service: SERVICE, config, logger });
  const requestTopic = topicOf(TOPICS.mintRequests);
  const registry = createSchemaRegistry({ ...toRegistry(config), onFault: faults.listenerOf('the schema registry') });
  const access = { ...toRedis(config), onFault: faults.listenerOf('Redis') };
  const view = await use('signable keys', () => openRedisRecords(SIGNABLE_KEYS, access));
  const keys = await use('signable key copy', () => openRecordCopy({ view }));
  const collectionView = await use('collections', () => openRedisRecords(COLLECTIONS, access));
  const collections = await use('collection copy', () => openRecordCopy({ view: collectionView }));
  const isUnlinked = createIsUnlinked(collections);
  const signer = createSigner({ privateKeys: config.SIGNER_KEYS });
  const reseal: ResealParts['reseal'] = (store, record) => resealSignableKey({ store, signer }, record);
  const producer = await use('producer', () => openProducer({ ...kafka, clientId: SERVICE, logger }));
  const reader = await use('log reader', () => openLogReader({ ...kafka, clientId: SERVICE }));
  await use('dead letter count', () => openDeadLetterCount({ ...kafka, topics: [requestTopic], metrics }));
  const { SESSION_TIMEOUT_MS: sessionTimeoutMs, CONSUMER_GROUP: groupId } = config;
  const minter = await use('minter', () =>
    openMinter({
      chains: new Map(config.CHAIN_NODES.map(toChain)),
      log: openLog({ registry, reader, tracing }),
      signerOf: (lane) => createKeySigner({ keys, signTransaction: signer.signTransaction }, lane),
      isUnlinked: ({ chain, contractAddress, projectId, requestedAt }) =>
        isUnlinked({ chain, contractAddress: toHexText(contractAddress), projectId, requestedAt }),
      openConsumer: (handler) =>
        openRecordConsumer({
          ...handler,
          ...kafka,
          groupId,
          topics: [requestTopic],
          sessionTimeoutMs,
          logger,
          metrics,
        }),
      producer,
      reader,
      requestTopic,
      schemaOf: registry.schemaOf,
      metrics,
      tracing,
      logger,
      clock: { wallClockMs: Date.now, monotonicMs: () => performance.now() },
    }),
  );
  const resealing = await use('resealing', async () =>
    openResealing({
      keys,
      openStore: createOpenStore(view, { registry, reader, producer }),
      reseal,
      signerKeys: config.SIGNER_KEYS.length,
      logger,
      metrics,
    }),
  );
  const ready = { ...minter.ready, keys: () => keys.ageMs < Number.POSITIVE_INFINITY };
  const reasons = () => ({ ...faults.reasons(), ...minter.blockers(), ...resealing.reasons() });
  const { ADMIN_HOST: host, ADMIN_PORT: port } = config;
  const degraded = { ...minter.degraded, signableKeys: () => Object.keys(resealing.reasons()).length === 0 };
  await use('admin listener', () => openAdminServer({ host, port, ready, degraded, reasons, metrics }));
});
