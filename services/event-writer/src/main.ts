import { openEventStore } from '@playline/events/clickhouse';
import { openAdminServer } from '@playline/http';
import { createLogger, createMetrics, runService } from '@playline/runtime';
import type { Consumer } from '@playline/stream';
import { createSchemaRegistry, openBlockConsumer, openLetterCount, openProducer } from '@playline/stream/kafka';
import { readConfig } from './config.ts';
import { createNoFences } from './fences.ts';
import { createPipeline } from './pipeline.ts';

const SERVICE = 'event-writer';
const config = readConfig(process.env);
const logger = createLogger({ service: SERVICE, level: config.LOG_LEVEL });
const metrics = createMetrics(SERVICE);
const brokers = config.KAFKA_BROKERS;

await runService(logger, async (use) => {
  let consumer: Consumer | null = null;
  const store = await use('event store', () =>
    openEventStore({
      url: config.CLICKHOUSE_URL,
      user: config.CLICKHOUSE_USER,
      password: config.CLICKHOUSE_PASSWORD,
      database: config.CLICKHOUSE_DATABASE,
    }),
  );
  const ready = { consumer: () => consumer?.ready() ?? false, store: () => store.ready() };
  await use('admin listener', () =>
    openAdminServer({ host: config.ADMIN_HOST, port: config.ADMIN_PORT, ready, metrics }),
  );
  const deadLetters = await use('dead letters', () => openProducer({ brokers, clientId: SERVICE, logger }));
  const pipeline = createPipeline({
    store,
    schemas: createSchemaRegistry({ url: config.SCHEMA_REGISTRY_URL }),
    fences: createNoFences(),
    deadLetters,
    metrics,
    topicPrefix: config.TOPIC_PREFIX,
    blockBytesMax: config.BLOCK_BYTES_MAX,
  });
  await use('letter count', () => openLetterCount({ brokers, topics: pipeline.topics, metrics }));
  await pipeline.prefetch();
  consumer = await use('consumer', () =>
    openBlockConsumer({
      brokers,
      groupId: config.CONSUMER_GROUP,
      topics: pipeline.topics,
      sink: pipeline.sink,
      limits: {
        rowsMax: config.BLOCK_ROWS_MAX,
        bytesMax: config.BLOCK_BYTES_MAX,
        ageMaxMs: config.BLOCK_AGE_MAX_MS,
      },
      deadLetters,
      sessionTimeoutMs: config.SESSION_TIMEOUT_MS,
      logger,
      metrics,
    }),
  );
});
