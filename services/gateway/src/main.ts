import { createKeyVerifier, openUsageCount, PROJECTS, RECORD_KINDS } from '@playline/access-keys';
import { openRedisKeyStore, openRedisKeyUsage, openRedisRecords } from '@playline/access-keys/redis';
import { createConnectionFaults } from '@playline/errors';
import { type HttpServer, openAdminServer, openHttpServer } from '@playline/http';
import { createIdentityKeyer } from '@playline/people';
import { openRedisPeople } from '@playline/people/redis';
import { openSharedLimiter } from '@playline/rate-limit';
import { openRedisBalances } from '@playline/rate-limit/redis';
import { createLogger, createMetrics, parseConfig, runService, toKafka, toRedis, toRegistry } from '@playline/runtime';
import { createSchemaRegistry, openLogReader, openProducer } from '@playline/stream/kafka';
import { createGatewayApp } from './app.ts';
import { openAudiencePorts } from './audience-ports.ts';
import { configSchema } from './config.ts';
import { openEnvironmentRates } from './environment-rates.ts';
import { openLevelRecords } from './level-records.ts';
import { openLevelKeys, openLevelParts } from './level-stores.ts';
import { createSharingReport } from './rate-limits/report.ts';
import { createDegraded, createReadiness } from './readiness.ts';
import { openRejections } from './rejections.ts';
import { openSchemaIds, topicNamesOf } from './schema-ids.ts';

const config = parseConfig(configSchema, process.env);
const logger = createLogger({ service: 'gateway', level: config.LOG_LEVEL });
const metrics = createMetrics('gateway');
const faults = createConnectionFaults(logger);
const kafka = { ...toKafka(config, logger), onFault: faults.of('Kafka') };
const redis = { ...toRedis(config), onFault: faults.of('Redis') };

await runService(logger, async (use) => {
  const { topics, schemas: written } = topicNamesOf(config.TOPIC_PREFIX);
  const producer = await use('producer', () => openProducer({ ...kafka, clientId: 'gateway', topics, logger }));
  // Connects while the key store is waited for.
  const balances = await use('rate limit store', () => openRedisBalances(redis));
  const limits = { balances, onShared: createSharingReport(metrics, logger) };
  const limiter = await use('rate limiter', () => openSharedLimiter(limits));
  const registry = createSchemaRegistry({ ...toRegistry(config), onFault: faults.of('the schema registry') });
  const level = await use('log reader', () => openLevelParts({ openLogReader, kafka, registry, config, logger }));
  const store = await use('key store', () => openLevelKeys({ openRedisKeyStore, redis, level }));
  // Each waits a moment for a Redis that is away: at once, so that all of them wait no longer than one.
  await Promise.all(
    RECORD_KINDS.filter(({ name }) => name !== PROJECTS.name).map((kind) =>
      use(kind.name, async () => openLevelRecords({ kind, view: await openRedisRecords(kind, redis), level })),
    ),
  );
  const rates = await use('projects', async () =>
    openEnvironmentRates({ view: await openRedisRecords(PROJECTS, redis), level }),
  );
  const schemas = await use('schema ids', () => openSchemaIds(registry, written, logger));
  const rejections = await use('rejections', () =>
    openRejections({ openProducer, kafka, registry, config, metrics, logger }),
  );
  const audience = await use('audience ports', () =>
    openAudiencePorts({ openRedisPeople, redis, store, level, config, logger }),
  );

  const lost = metrics.counter('gateway_usage_lost_total', 'Requests that the counts of key use do not tell of');
  const onLost = (requests: number) => lost.inc(requests);
  // Closed behind the listener, so that the requests of a drain are told as well.
  const usage = await use('use of keys', async () =>
    openUsageCount({ store: await openRedisKeyUsage(redis), onLost, logger }),
  );

  let server: HttpServer | null = null;
  const ready = createReadiness({ producer, schemas, store, accepting: () => server?.state === 'open' });
  const { ADMIN_HOST: host, ADMIN_PORT: port } = config;
  const degraded = createDegraded(audience.people, metrics);
  await use('admin listener', () => openAdminServer({ host, port, ready, degraded, reasons: faults.reasons, metrics }));

  const app = createGatewayApp({
    config: { ...config, PUBLIC_URL: config.PUBLIC_URL ?? `http://${config.HTTP_HOST}:${config.HTTP_PORT}` },
    ...{ producer, limiter, audience, metrics, logger, ratesOf: rates.ratesOf },
    publishRejections: rejections.publish,
    verifyPublishable: createKeyVerifier({ store, prefix: config.ACCESS_KEY_PREFIX, kind: 'publishable' }),
    ...{ keyer: createIdentityKeyer(config.IDENTITY_PEPPER), schemaIds: schemas.current, usage: usage.counter },
  });
  // Opened last, so closed first: in-flight requests are answered while the producer still runs, then it is flushed.
  server = await use('listener', () => openHttpServer({ app, host: config.HTTP_HOST, port: config.HTTP_PORT }));
});
