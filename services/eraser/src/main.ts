import { TOPICS } from '@playline/contracts';
import { openErasureRecords, openErasureRows } from '@playline/erasure/clickhouse';
import { openAdminServer } from '@playline/http';
import { openRedisPeople } from '@playline/people/redis';
import {
  createLogger,
  createMetrics,
  openTracing,
  parseConfig,
  runService,
  toClickHouse,
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
import { openEraser } from './pipeline.ts';

const SERVICE = 'eraser';
const config = parseConfig(configSchema, process.env);
const logger = createLogger({ service: SERVICE, level: config.LOG_LEVEL });
const metrics = createMetrics(SERVICE);
const faults = createConnectionFaults(logger);
const kafka = { ...toKafka(config, logger), onFault: faults.listenerOf('Kafka') };
const clickhouse = { ...toClickHouse(config), onFault: faults.listenerOf('ClickHouse') };

await runService(logger, async (use) => {
  const tracing = await openTracing(use, { service: SERVICE, config, logger });
  const requestTopic = config.TOPIC_PREFIX + TOPICS.erasures.name;
  const { SESSION_TIMEOUT_MS: sessionTimeoutMs, CONSUMER_GROUP: groupId } = config;
  const registry = createSchemaRegistry({ ...toRegistry(config), onFault: faults.listenerOf('the schema registry') });
  const people = await use('people', () =>
    openRedisPeople({
      ...toRedis(config),
      linkTopic: config.TOPIC_PREFIX + TOPICS.identityLinks.name,
      consentTopic: config.TOPIC_PREFIX + TOPICS.consents.name,
      onUnusable: faults.listenerOf('Redis'),
      onFault: faults.listenerOf('Redis'),
    }),
  );
  const records = await use('erasure records', () => openErasureRecords(clickhouse));
  const rows = await use('erasure rows', () => openErasureRows(clickhouse));
  const producer = await use('producer', () => openProducer({ ...kafka, clientId: SERVICE, logger }));
  const reader = await use('log reader', () => openLogReader({ ...kafka, clientId: SERVICE }));
  await use('dead letter count', () => openDeadLetterCount({ ...kafka, topics: [requestTopic], metrics }));
  const eraser = await use('eraser', () =>
    openEraser({
      people,
      records,
      rows,
      producer,
      reader,
      metrics,
      tracing,
      logger,
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
      schemaOf: registry.schemaOf,
      groups: { linker: config.LINKER_GROUP, writer: config.WRITER_GROUP },
      topicPrefix: config.TOPIC_PREFIX,
      generation: config.LINK_TOPIC_GENERATION,
      windowMs: config.BATCH_WINDOW_MS,
      batchRequestsMax: config.BATCH_REQUESTS_MAX,
      schedule: { scrubMinute: config.SCRUB_AT, removalMinute: config.REMOVAL_AT },
      wallClockMs: Date.now,
    }),
  );
  const ready = { ...eraser.ready, store: faults.clearingOnSuccess('ClickHouse', () => rows.ready()) };
  const reasons = () => ({ ...faults.reasons(), ...eraser.blockers() });
  const { ADMIN_HOST: host, ADMIN_PORT: port } = config;
  await use('admin listener', () => openAdminServer({ host, port, ready, reasons, metrics }));
});
