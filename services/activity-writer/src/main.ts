import { openActivityStore } from '@playline/chain/clickhouse';
import { openRedisWatermarks } from '@playline/chain/redis';
import { TOPICS } from '@playline/contracts';
import { openAdminServer } from '@playline/http';
import { openMintWriter } from '@playline/mints/clickhouse';
import { openRedisMints } from '@playline/mints/redis';
import {
  createLogger,
  createMetrics,
  openTracing,
  parseConfig,
  runService,
  toBlockLimits,
  toClickHouse,
  toKafka,
  toRedis,
  toRegistry,
} from '@playline/runtime';
import { createConnectionFaults } from '@playline/stores';
import { type Consumer, traceSink } from '@playline/stream';
import {
  createSchemaRegistry,
  openBlockConsumer,
  openDeadLetterCount,
  openLogReader,
  openProducer,
} from '@playline/stream/kafka';
import { configSchema } from './config.ts';
import { openMintStates } from './mint-states.ts';
import { createPipeline } from './pipeline.ts';
import { createChainPartitions } from './steps/refuse-updates.ts';
import { createSendTick, openTicks } from './ticks.ts';

const SERVICE = 'activity-writer';
const config = parseConfig(configSchema, process.env);
const logger = createLogger({ service: SERVICE, level: config.LOG_LEVEL });
const metrics = createMetrics(SERVICE);
const faults = createConnectionFaults(logger);
const kafka = { ...toKafka(config, logger), onFault: faults.listenerOf('Kafka') };
const registry = { ...toRegistry(config), onFault: faults.listenerOf('the schema registry') };
const topic = config.TOPIC_PREFIX + TOPICS.activities.name;
const limits = toBlockLimits(config);

await runService(logger, async (use) => {
  const tracing = await openTracing(use, { service: SERVICE, config, logger });
  let consumer: Consumer | null = null;
  const clickhouse = { ...toClickHouse(config), onFault: faults.listenerOf('ClickHouse') };
  const redis = { ...toRedis(config), onFault: faults.listenerOf('Redis') };
  const store = await use('activity store', () => openActivityStore(clickhouse));
  const watermarks = await use('watermarks', () => openRedisWatermarks(redis));
  const mints = await use('mint writer', () => openMintWriter(clickhouse));
  const { view } = await use('mints', () => openRedisMints(redis));
  const producer = await use('producer', () => openProducer({ ...kafka, clientId: SERVICE, logger }));
  const sendTick = createSendTick(producer, topic);
  const lag = () => consumer?.lag() ?? new Map();
  const ticks = await use('ticks', () =>
    openTicks({ topic, lag, sendTick, readWatermark: watermarks.read, logger, metrics }),
  );
  const ready = {
    consumer: () => consumer?.ready() ?? false,
    store: faults.clearingOnSuccess('ClickHouse', () => store.ready()),
    watermarks: faults.clearingOnSuccess('Redis', () => watermarks.ready()),
  };
  const log = await use('log', () => openLogReader({ ...kafka, clientId: SERVICE }));
  const schemaOf = createSchemaRegistry(registry).schemaOf;
  const { TOPIC_PREFIX: topicPrefix } = config;
  const mintTopics = [TOPICS.mintStates, TOPICS.mintRequests].map(({ name }) => `${topicPrefix}${name}/`);
  const isBehind = () =>
    [...lag()].some(([name, waiting]) => waiting > 0 && mintTopics.some((mint) => name.startsWith(mint)));
  const states = await use('mint view', () =>
    openMintStates({ view, isBehind, log, schemaOf, topicPrefix, logger, metrics }),
  );
  const degraded = { ticks: () => ticks.working, mintStates: () => states.working };
  const blockers = () => Object.fromEntries(consumer?.blockers() ?? []);
  const reasons = () => ({ ...faults.reasons(), ...ticks.reasons(), ...states.reasons(), ...blockers() });
  await use('admin listener', () =>
    openAdminServer({ host: config.ADMIN_HOST, port: config.ADMIN_PORT, ready, degraded, reasons, metrics }),
  );
  const { topics, sink } = createPipeline({
    store,
    mints,
    watermarks,
    schemaOf,
    deadLetters: producer,
    partitionOf: createChainPartitions(log, topic),
    onRecordRead: ticks.recordRead,
    onMint: states.wake,
    metrics,
    topicPrefix,
  });
  await use('dead letter count', () => openDeadLetterCount({ ...kafka, topics, metrics }));
  const { CONSUMER_GROUP: groupId, SESSION_TIMEOUT_MS: sessionTimeoutMs } = config;
  const common = { ...kafka, sessionTimeoutMs, logger, metrics };
  consumer = await use('consumer', () =>
    openBlockConsumer({ ...common, groupId, topics, sink: traceSink(sink, tracing), limits, deadLetters: producer }),
  );
});
