import { identityDecisionCodec, TOPICS } from '@playline/contracts';
import { openAdminServer } from '@playline/http';
import { createIdentityKeyer, createIsBlocked, DEFAULT_LIMITS } from '@playline/identity';
import { openRedisIdentityGraph } from '@playline/identity/redis';
import { createLogger, createMetrics, parseConfig, runService } from '@playline/runtime';
import { createSchemaRegistry, openLetterCount, openProducer, openRecordConsumer } from '@playline/stream/kafka';
import { configSchema } from './config.ts';
import { openLinker } from './pipeline.ts';

const config = parseConfig(configSchema, process.env);
const logger = createLogger({ service: 'identity-linker', level: config.LOG_LEVEL });
const metrics = createMetrics('identity-linker');

await runService(logger, async (use) => {
  const linkTopic = config.TOPIC_PREFIX + TOPICS.identityLinks.name;
  const decisionTopic = config.TOPIC_PREFIX + TOPICS.identityDecisions.name;
  const { KAFKA_BROKERS: brokers, SESSION_TIMEOUT_MS: sessionTimeoutMs, CONSUMER_GROUP: groupId } = config;
  const registry = createSchemaRegistry({ url: config.SCHEMA_REGISTRY_URL });
  const graph = await use('identity graph', () =>
    openRedisIdentityGraph({
      url: config.REDIS_URL,
      linkTopic,
      limits: { ...DEFAULT_LIMITS, uniqueTypes: config.UNIQUE_IDENTITY_TYPES },
      onFault: (error) => logger.warn({ error }, 'the identity graph does not answer'),
    }),
  );
  const producer = await use('producer', () =>
    openProducer({ brokers, clientId: 'identity-linker', topics: [decisionTopic], logger }),
  );
  await use('letter count', () => openLetterCount({ brokers, topics: [linkTopic], metrics }));
  const linker = await use('linker', () =>
    openLinker({
      graph,
      producer,
      openConsumer: (handler) =>
        openRecordConsumer({ ...handler, brokers, groupId, topics: [linkTopic], sessionTimeoutMs, logger, metrics }),
      schemaOf: registry.schemaOf,
      decisionSchemaId: () => registry.idOf(`${decisionTopic}-value`, identityDecisionCodec.schema),
      rules: { keyOf: createIdentityKeyer(config.IDENTITY_PEPPER), isBlocked: createIsBlocked(config.BLOCKED_IDS) },
      generation: config.LINK_TOPIC_GENERATION,
      decisionTopic,
      metrics,
      logger,
    }),
  );
  const { ADMIN_HOST: host, ADMIN_PORT: port } = config;
  await use('admin listener', () => openAdminServer({ host, port, ready: linker.ready, metrics }));
});
