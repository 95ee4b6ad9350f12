import { ACCESS_KEYS, createKeyVerifier, openUsageCount, PROJECTS, RECORD_KINDS } from '@playline/access-keys';
import { openRedisKeyUsage, openRedisRecords, RedisSharing } from '@playline/access-keys/redis';
import { buildSdk } from '@playline/audience-client/sdk';
import { TOPICS } from '@playline/contracts';
import { type HttpServer, openAdminServer, openHttpServer } from '@playline/http';
import { createIdentityKeyer } from '@playline/people';
import { openRedisPeople } from '@playline/people/redis';
import { openSharedLimiter } from '@playline/rate-limit';
import { openRedisBalances } from '@playline/rate-limit/redis';
import {
  createLogger,
  createMetrics,
  openTracing,
  parseConfig,
  runService,
  toKafka,
  toRedis,
  toRegistry,
  type Use,
  watchWrites,
} from '@playline/runtime';
import { createConnectionFaults } from '@playline/stores';
import { createSchemaRegistry, openLogReader, openProducer } from '@playline/stream/kafka';
import { createDocsRoutes, createGatewayApp, createReadiness } from './app.ts';
import { startHoldSweep } from './audience-routes.ts';
import { createClockWatch, startClockComparison } from './clock-watch.ts';
import { configSchema } from './config.ts';
import { openEnvironmentRates } from './environment-rates.ts';
import { createSharedLog } from './rate-limits/index.ts';
import { openRejections } from './rejections.ts';
import { audienceSchemasOf, resolveSchemaIds, topicNamesOf } from './schema-ids.ts';
import {
  openSyncedConsents,
  openSyncedKeys,
  openSyncedRecords,
  type SyncedKeys,
  type SyncParts,
} from './synced-views.ts';

const config = parseConfig(configSchema, process.env);
const { TOPIC_PREFIX: topicPrefix, ACCESS_KEY_PREFIX: prefix, ADMIN_HOST: host, ADMIN_PORT: port } = config;
const logger = createLogger({ service: 'gateway', level: config.LOG_LEVEL });
const metrics = createMetrics('gateway');
const faults = createConnectionFaults(logger);
const clock = createClockWatch();
const onLogTime = clock.observe;
const kafka = { ...toKafka(config, logger), onFault: faults.listenerOf('Kafka'), clientId: 'gateway' };
const redis = { ...toRedis(config), onFault: faults.listenerOf('Redis'), sharing: new RedisSharing() };
const registry = createSchemaRegistry({ ...toRegistry(config), onFault: faults.listenerOf('the schema registry') });
/** Shorter than the request deadline, so that the client still receives a 500. */
const COMMAND_TIMEOUT_MS = 2_000;

await runService(logger, async (use) => {
  const tracing = await openTracing(use, { service: 'gateway', config, logger });
  const { topics, schemas: encodedSchemas } = topicNamesOf(topicPrefix);
  const producer = await use('producer', () => openProducer({ ...kafka, topics, logger, onLogTime }));
  // Connects in the background while the keys are opened.
  const balances = await use('rate limit store', () => openRedisBalances(redis));
  const limits = { balances, onShared: createSharedLog(metrics, logger) };
  const limiter = await use('rate limiter', () => openSharedLimiter(limits));
  const { sync, keys, ratesOf } = await openViews(use);
  const schemas = await use('schema ids', () => resolveSchemaIds(registry, encodedSchemas, logger));
  const rejections = await openRejectionPublisher(use);
  const audience = await openAudience(use, { sync, keys });
  await use('clock', () => startClockComparison(clock, audience.people.readClockMs));
  const lostUsage = metrics.counter('playline_gateway_usage_lost_total', 'Requests missing from key usage counts');
  const onLost = (requests: number) => lostUsage.inc(requests);
  // Opened before the listener and closed after it, so that requests during the drain are counted.
  const usage = await use('key usage', async () =>
    openUsageCount({ store: await openRedisKeyUsage(redis), onLost, logger }),
  );
  let server: HttpServer | null = null;
  const ready = createReadiness({ producer, schemas, keys, clock, accepting: () => server?.state === 'open' });
  // If Redis is not writable, only consents and erasures fail.
  const degraded = { consentsAndErasures: () => audience.people.ready() };
  watchWrites(metrics, () => audience.people.takesWrites());
  clock.reportOffset(metrics);
  const reasons = clock.withReasons(faults.reasons);
  await use('admin listener', () => openAdminServer({ host, port, ready, degraded, reasons, metrics }));

  const publicUrl = config.PUBLIC_URL ?? `http://${config.HTTP_HOST}:${config.HTTP_PORT}`;
  const app = createGatewayApp({
    config: { ...config, PUBLIC_URL: publicUrl },
    docs: createDocsRoutes({
      publicUrl,
      chainApiUrl: config.CHAIN_API_URL,
      clickhouseUrl: config.CLICKHOUSE_PUBLIC_URL,
      headerPrefix: config.HTTP_HEADER_PREFIX,
      limits: config,
      downloads: buildSdk(),
    }),
    producer,
    limiter,
    audience,
    metrics,
    tracing,
    logger,
    ratesOf,
    clock,
    publishRejections: rejections.publish,
    verifyPublishable: createKeyVerifier({ keys, prefix, kind: 'publishable' }),
    findEnded: keys.findEnded,
    keyer: createIdentityKeyer(config.IDENTITY_PEPPER),
    schemaIds: schemas.current,
    usage: usage.counter,
  });
  // Opened last and closed first, so that requests in flight complete before the producer closes.
  server = await use('listener', () => openHttpServer({ app, host: config.HTTP_HOST, port: config.HTTP_PORT }));
});

async function openViews(use: Use) {
  const log = await use('log reader', () => openLogReader(kafka));
  const sync = { log, registry, topicPrefix, logger };
  const keys = await use('keys', async () => openSyncedKeys(await openRedisRecords(ACCESS_KEYS, redis), sync));
  // Opened in parallel, so that an unavailable Redis delays startup by only one timeout.
  await Promise.all(
    RECORD_KINDS.filter(({ name }) => name !== PROJECTS.name && name !== ACCESS_KEYS.name).map((kind) =>
      use(kind.name, async () => openSyncedRecords(await openRedisRecords(kind, redis), sync)),
    ),
  );
  const { ratesOf } = await use('projects', async () =>
    openEnvironmentRates(await openRedisRecords(PROJECTS, redis), sync),
  );
  return { sync, keys, ratesOf };
}

/** Opens a separate producer, because a rejection topic without a leader must not delay accepted messages. */
function openRejectionPublisher(use: Use) {
  const topic = topicPrefix + TOPICS.rejections.name;
  const open = () => openProducer({ ...kafka, clientId: 'gateway-rejections', topics: [topic], logger, onLogTime });
  return use('rejections', async () => openRejections({ producer: await open(), topic, registry, metrics, logger }));
}

async function openAudience(use: Use, { sync, keys }: { sync: SyncParts; keys: SyncedKeys }) {
  const consentTopic = topicPrefix + TOPICS.consents.name;
  const options = { onUnusable: redis.onFault, consentTopic, commandTimeoutMs: COMMAND_TIMEOUT_MS };
  const people = await use('people', () => openRedisPeople({ ...redis, ...options }));
  const consents = await use('consents', () => openSyncedConsents(people.consents, sync));
  const ids = await use('schema ids for consents and erasures', () =>
    resolveSchemaIds(registry, audienceSchemasOf(topicPrefix), logger),
  );
  await use('hold sweep', () => startHoldSweep(people.guards, logger));
  return {
    people,
    consents,
    schemaIds: ids.current,
    verifySecret: createKeyVerifier({ keys, prefix, kind: 'secret' }),
  };
}
