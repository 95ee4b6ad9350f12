import {
  ACCESS_KEYS,
  COLLECTIONS,
  createKeyVerifier,
  openKeys,
  openRecordCopy,
  openUsageCount,
  RATE_LIMIT_KEYS,
  SIGNABLE_KEYS,
} from '@playline/access-keys';
import { openRedisKeyUsage, openRedisRecords, RedisSharing } from '@playline/access-keys/redis';
import { createDocsRoutes } from '@playline/api-docs';
import { createCursors } from '@playline/chain';
import { openChainStore } from '@playline/chain/clickhouse';
import { openRedisWatermarks } from '@playline/chain/redis';
import { createRpcNode } from '@playline/chain/rpc';
import { type HttpServer, openAdminServer, openHttpServer } from '@playline/http';
import { createMintCursors } from '@playline/mints';
import { openMintReader } from '@playline/mints/clickhouse';
import { openRedisMints } from '@playline/mints/redis';
import {
  createLogger,
  createMetrics,
  openTracing,
  parseConfig,
  runService,
  type Tracing,
  toClickHouse,
  toKafka,
  toRedis,
  toRegistry,
  type Use,
  watchWrites,
} from '@playline/runtime';
import { createConnectionFaults } from '@playline/stores';
import { createSchemaRegistry, openLogReader, openProducer } from '@playline/stream/kafka';
import { openRateLimitKeys } from './admit-call.ts';
import { createChainApiApp } from './app.ts';
import { toChains } from './chains.ts';
import { configSchema } from './config.ts';
import { findExampleToken } from './docs/example-token.ts';
import { createChainDocs } from './docs/source.ts';
import { createHorizons, createReadiness } from './horizons.ts';
import { createChainApiMetrics, exportHorizons } from './metrics.ts';
import { createCollections } from './minting/collections.ts';
import { createIsLogApplied, createMintTopics, mintTopicNames } from './minting/publish.ts';

const SERVICE = 'chain-api';
const config = parseConfig(configSchema, process.env);
const logger = createLogger({ service: SERVICE, level: config.LOG_LEVEL });
const registry = createMetrics(SERVICE);
const metrics = createChainApiMetrics(registry);
const faults = createConnectionFaults(logger);
const redis = { ...toRedis(config), onFault: faults.listenerOf('Redis'), sharing: new RedisSharing() };
const clickhouse = { ...toClickHouse(config), onFault: faults.listenerOf('ClickHouse') };
const kafka = { ...toKafka(config, logger), onFault: faults.listenerOf('Kafka'), clientId: SERVICE };
const chains = toChains(config.CHAINS, config.ACTIVITY_PARTITIONS);

await runService(logger, async (use) => {
  const tracing = await openTracing(use, { service: SERVICE, config, logger });
  const opened = await use('chain store', () => openChainStore(clickhouse));
  const store = { ...opened, ready: faults.clearingOnSuccess('ClickHouse', opened.ready) };
  const watermarks = await use('watermarks', () => openRedisWatermarks(redis));
  const rateLimitKeys = await use('rate limit keys', async () =>
    openRateLimitKeys({ view: await openRedisRecords(RATE_LIMIT_KEYS, redis), prefix: config.ACCESS_KEY_PREFIX }),
  );
  const horizons = createHorizons({ watermarks, onFault: metrics.onStaleHorizon });
  exportHorizons(registry, chains, horizons.lastKnown);
  const minting = await openMinting(use, tracing);
  const lost = registry.counter('playline_chain_api_usage_lost_total', 'Calls missing from the key usage counts');
  const onLost = (calls: number) => lost.inc(calls);
  // Closes after the listener, so that calls during a drain are counted.
  const usage = await use('key usage', async () =>
    openUsageCount({ store: await openRedisKeyUsage(redis), onLost, logger }),
  );

  let server: HttpServer | null = null;
  const ready = createReadiness({ store, horizons, chains, accepting: () => server?.state === 'open' });
  watchWrites(registry, minting.isWritable);
  const degraded = { newActivities: watermarks.ready, rateLimitKeys: rateLimitKeys.ready, minting: minting.ready };
  const admin = { host: config.ADMIN_HOST, port: config.ADMIN_PORT, reasons: faults.reasons, metrics: registry };
  await use('admin listener', () => openAdminServer({ ...admin, ready, degraded }));

  const publicUrl = config.PUBLIC_URL ?? `http://${config.HTTP_HOST}:${config.HTTP_PORT}`;
  const exampleToken = await use('example token', async () => findExampleToken(store, chains));
  const docsSettings = { publicUrl, gatewayUrl: config.GATEWAY_URL, headerPrefix: config.HTTP_HEADER_PREFIX, chains };
  const app = createChainApiApp({
    config: { ...config, PUBLIC_URL: publicUrl },
    chains,
    docs: createDocsRoutes(() => createChainDocs({ ...docsSettings, token: exampleToken.current() }), {
      version: exampleToken.current,
    }),
    store,
    rateLimitKeys,
    metrics,
    tracing,
    logger,
    usage: usage.counter,
    ...minting.parts,
    createNode: (node) => createRpcNode(node),
    cursors: createCursors({ keys: config.CURSOR_KEYS }),
    readHorizon: horizons.read,
  });
  // Opened last and therefore closed first, so that requests in flight can still use the stores.
  server = await use('listener', () => openHttpServer({ app, host: config.HTTP_HOST, port: config.HTTP_PORT }));
});

/** Reads of chain data do not depend on minting. */
async function openMinting(use: Use, tracing: Tracing | null) {
  const keyView = await use('keys', () => openRedisRecords(ACCESS_KEYS, redis));
  const collections = await use('collections', () => openRedisRecords(COLLECTIONS, redis));
  const signableKeys = await use('signable keys', () => openRedisRecords(SIGNABLE_KEYS, redis));
  const keys = await use('key copy', async () => openKeys({ view: keyView }));
  const copies = {
    collections: await use('collection copy', async () => openRecordCopy({ view: collections })),
    signableKeys: await use('signable key copy', async () => openRecordCopy({ view: signableKeys })),
  };
  const { claims, view, quotas, ready } = await use('mints', () => openRedisMints(redis));
  const reader = await use('mint requests', () => openMintReader(clickhouse));
  const log = await use('log reader', async () => openLogReader(kafka));
  const { TOPIC_PREFIX: topicPrefix, ACCESS_KEY_PREFIX: prefix } = config;
  const producer = await use('producer', () => openProducer({ ...kafka, topics: mintTopicNames(topicPrefix), logger }));
  const schemas = createSchemaRegistry({ ...toRegistry(config), onFault: faults.listenerOf('the schema registry') });
  const readOffsets = async () => (await view.progress()).offsets;
  return {
    isWritable: ready,
    ready: async () => (await producer.ready()) && (await ready()),
    parts: {
      verifySecret: createKeyVerifier({ keys, prefix, kind: 'secret' }),
      minting: {
        collections: createCollections(copies),
        claims,
        quotas,
        reader,
        cursors: createMintCursors({ keys: config.CURSOR_KEYS }),
        topics: createMintTopics({ producer, registry: schemas, topicPrefix, tracing }),
        isLogApplied: createIsLogApplied({ log, readOffsets, topicPrefix }),
      },
    },
  };
}
