import { openErasureRecords } from '@playline/erasure/clickhouse';
import { createEventCounts, createEventDays, openEventStore } from '@playline/events/clickhouse';
import { openAdminServer } from '@playline/http';
import {
  auditGroupOf,
  createLogger,
  createMetrics,
  openTracing,
  parseConfig,
  runService,
  toBlockLimits,
  toClickHouse,
  toKafka,
  toRegistry,
} from '@playline/runtime';
import { createConnectionFaults } from '@playline/stores';
import { type Consumer, traceSink } from '@playline/stream';
import { createSchemaRegistry, openBlockConsumer, openDeadLetterCount, openProducer } from '@playline/stream/kafka';
import { configSchema } from './config.ts';
import { openFences } from './fences.ts';
import { createPipeline } from './pipeline.ts';
import { openQueryLimits } from './query-limits.ts';
import { repeat } from './repeat.ts';

const SERVICE = 'event-writer';
/** Finished minutes appear in the portal after this time. */
const COUNTS_INTERVAL_MS = 10_000;
const config = parseConfig(configSchema, process.env);
const logger = createLogger({ service: SERVICE, level: config.LOG_LEVEL });
const metrics = createMetrics(SERVICE);
const faults = createConnectionFaults(logger);
const kafka = { ...toKafka(config, logger), onFault: faults.listenerOf('Kafka') };
const registry = { ...toRegistry(config), onFault: faults.listenerOf('the schema registry') };
const limits = toBlockLimits(config);

await runService(logger, async (use) => {
  const tracing = await openTracing(use, { service: SERVICE, config, logger });
  const consumers = new Map<'consumer' | 'audit', Consumer>();
  const clickhouse = { ...toClickHouse(config), onFault: faults.listenerOf('ClickHouse') };
  const store = await use('event store', () => openEventStore(clickhouse));
  const records = await use('erasure records', () => openErasureRecords(clickhouse));
  const fences = await use('fences', () => openFences(records, logger));
  const ready = {
    consumer: () => consumers.get('consumer')?.ready() ?? false,
    audit: () => consumers.get('audit')?.ready() ?? false,
    store: faults.clearingOnSuccess('ClickHouse', () => store.ready()),
    fences: () => fences.set.loaded,
  };
  const blockers = () => Object.fromEntries([...consumers.values()].flatMap((each) => [...each.blockers()]));
  const reasons = () => ({ ...faults.reasons(), ...fences.reasons(), ...blockers() });
  await use('admin listener', () =>
    openAdminServer({ host: config.ADMIN_HOST, port: config.ADMIN_PORT, ready, reasons, metrics }),
  );
  await use('query limits', () => openQueryLimits({ account: toClickHouse(config), logger, metrics }));
  const deadLetters = await use('dead letters', () => openProducer({ ...kafka, clientId: SERVICE, logger }));
  const pipeline = createPipeline({
    store,
    schemas: createSchemaRegistry(registry),
    fences: fences.set,
    deadLetters,
    metrics,
    topicPrefix: config.TOPIC_PREFIX,
    shards: clickhouse.cluster?.urls.length,
    blockBytesMax: config.BLOCK_BYTES_MAX,
  });
  const { topics, auditTopics } = pipeline;
  await use('dead letter count', () => openDeadLetterCount({ ...kafka, topics: [...topics, ...auditTopics], metrics }));
  await pipeline.prefetch();
  const { CONSUMER_GROUP: groupId, SESSION_TIMEOUT_MS: sessionTimeoutMs } = config;
  const sink = traceSink(pipeline.sink, tracing);
  const common = { ...kafka, sink, limits, deadLetters, sessionTimeoutMs, logger, metrics };
  const open = (groupId: string, topics: readonly string[]) => openBlockConsumer({ ...common, groupId, topics });
  consumers.set('consumer', await use('consumer', () => open(groupId, topics)));
  consumers.set('audit', await use('audit', () => open(auditGroupOf(groupId), auditTopics)));
  const counts = createEventCounts(toClickHouse(config));
  const days = createEventDays(toClickHouse(config));
  const onFault = (error: unknown) =>
    logger.warn(
      { error },
      'cannot count events; the overview of the portal is not current, and events_per_day is slower',
    );
  const count = async () => {
    // The counts of several writers agree, but each costs as much as the first.
    if (!consumers.get('consumer')?.lag().has(`${topics[0]}/0`)) return;
    await counts.update();
    await days.update();
  };
  await use('event counts', () => repeat({ intervalMs: COUNTS_INTERVAL_MS, run: count, onFault }));
});
