import { identityDecisionCodec, schemaSubjectOf, TOPICS } from '@playline/contracts';
import { openAdminServer } from '@playline/http';
import { createIdentityKeyer, createIsBlocked, DEFAULT_LIMITS, SUSPECT_LIMIT } from '@playline/people';
import { openRedisPeople } from '@playline/people/redis';
import {
  createLogger,
  createMetrics,
  parkedGroupOf,
  parseConfig,
  runService,
  toKafka,
  toRedis,
  toRegistry,
} from '@playline/runtime';
import { createConnectionFaults } from '@playline/stores';
import {
  createSchemaRegistry,
  openDeadLetterCount,
  openLogReader,
  openProducer,
  openRecordConsumer,
} from '@playline/stream/kafka';
import { configSchema } from './config.ts';
import { openLinker } from './pipeline.ts';

const config = parseConfig(configSchema, process.env);
const logger = createLogger({ service: 'identity-linker', level: config.LOG_LEVEL });
const metrics = createMetrics('identity-linker');
const faults = createConnectionFaults(logger);
const kafka = { ...toKafka(config, logger), onFault: faults.listenerOf('Kafka') };

await runService(logger, async (use) => {
  const linkTopic = config.TOPIC_PREFIX + TOPICS.identityLinks.name;
  const parkedTopic = config.TOPIC_PREFIX + TOPICS.parkedLinks.name;
  const decisionTopic = config.TOPIC_PREFIX + TOPICS.identityDecisions.name;
  const { SESSION_TIMEOUT_MS: sessionTimeoutMs, CONSUMER_GROUP: groupId } = config;
  const registry = createSchemaRegistry({ ...toRegistry(config), onFault: faults.listenerOf('the schema registry') });
  const log = await use('log', async () => openLogReader({ ...kafka, clientId: 'identity-linker' }));
  const people = await use('people', () =>
    openRedisPeople({
      ...toRedis(config),
      linkTopic,
      linkPartitions: async () => (await log.bounds(linkTopic)).length,
      onUnusable: faults.listenerOf('Redis'),
      limits: { ...DEFAULT_LIMITS, suspectLimit: SUSPECT_LIMIT, uniqueTypes: config.UNIQUE_IDENTITY_TYPES },
      onFault: (error) => {
        logger.warn({ error }, 'identity graph did not respond');
        faults.listenerOf('Redis')(error);
      },
    }),
  );
  const producer = await use('producer', () =>
    openProducer({ ...kafka, clientId: 'identity-linker', topics: [decisionTopic, parkedTopic], logger }),
  );
  const reading = { ...kafka, sessionTimeoutMs, logger, metrics };
  await use('dead letter count', () => openDeadLetterCount({ ...kafka, topics: [linkTopic, parkedTopic], metrics }));
  const linker = await use('linker', () =>
    openLinker({
      people,
      producer,
      log,
      openConsumer: (handler) => openRecordConsumer({ ...handler, ...reading, groupId, topics: [linkTopic] }),
      openParkedConsumer: (handler) =>
        openRecordConsumer({ ...handler, ...reading, groupId: parkedGroupOf(groupId), topics: [parkedTopic] }),
      schemaOf: registry.schemaOf,
      decisionSchemaId: () => registry.idOf(schemaSubjectOf(decisionTopic), identityDecisionCodec.schema),
      rules: { keyOf: createIdentityKeyer(config.IDENTITY_PEPPER), isBlocked: createIsBlocked(config.BLOCKED_IDS) },
      generation: config.LINK_TOPIC_GENERATION,
      linkTopic,
      parkedTopic,
      decisionTopic,
      metrics,
      logger,
    }),
  );
  const { ADMIN_HOST: host, ADMIN_PORT: port } = config;
  const reasons = () => ({ ...faults.reasons(), ...linker.blockers() });
  await use('admin listener', () => openAdminServer({ host, port, ready: linker.ready, reasons, metrics }));
});
