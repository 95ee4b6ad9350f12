import { createKeyVerifier } from '@playline/access-keys';
import { openRedisKeyStore } from '@playline/access-keys/redis';
import { TOPICS } from '@playline/contracts';
import { type HttpServer, openAdminServer, openHttpServer } from '@playline/http';
import { createIdentityKeyer } from '@playline/identity';
import { createLogger, createMetrics, parseConfig, runService } from '@playline/runtime';
import { createSchemaRegistry, openProducer } from '@playline/stream/kafka';
import { createGatewayApp } from './app.ts';
import { configSchema } from './config.ts';
import { createReadiness } from './readiness.ts';
import { openSchemaIds } from './schema-ids.ts';

const config = parseConfig(configSchema, process.env);
const logger = createLogger({ service: 'gateway', level: config.LOG_LEVEL });
const metrics = createMetrics('gateway');

await runService(logger, async (use) => {
  const topics = {
    messages: config.TOPIC_PREFIX + TOPICS.messages.name,
    identityLinks: config.TOPIC_PREFIX + TOPICS.identityLinks.name,
  };
  const producer = await use('producer', () =>
    openProducer({ brokers: config.KAFKA_BROKERS, clientId: 'gateway', topics: Object.values(topics), logger }),
  );
  const store = await use('key store', () => openRedisKeyStore({ url: config.REDIS_URL }));
  const registry = createSchemaRegistry({ url: config.SCHEMA_REGISTRY_URL });
  const subjects = { messages: `${topics.messages}-value`, identityLinks: `${topics.identityLinks}-value` };
  const schemas = await use('schema ids', () => openSchemaIds(registry, subjects, logger));

  let server: HttpServer | null = null;
  const ready = createReadiness({ producer, schemas, store, accepting: () => server?.state === 'open' });
  const { ADMIN_HOST: host, ADMIN_PORT: port } = config;
  await use('admin listener', () => openAdminServer({ host, port, ready, metrics }));

  const app = createGatewayApp({
    config: { ...config, PUBLIC_URL: config.PUBLIC_URL ?? `http://${config.HTTP_HOST}:${config.HTTP_PORT}` },
    producer,
    verifyPublishable: createKeyVerifier({ store, prefix: config.ACCESS_KEY_PREFIX, kind: 'publishable' }),
    keyer: createIdentityKeyer(config.IDENTITY_PEPPER),
    schemaIds: schemas.current,
    metrics,
    logger,
  });
  // Opened last, so closed first: in-flight requests are answered while the producer still runs, then it is flushed.
  server = await use('listener', () => openHttpServer({ app, host: config.HTTP_HOST, port: config.HTTP_PORT }));
});
