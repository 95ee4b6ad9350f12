/**
 * The event writer as its main.ts makes it, but without intents: the control of the kill tests. It doubles rows, which
 * shows that they would see it.
 */
import { openEventStore } from '@playline/events/clickhouse';
import { openAdminServer } from '@playline/http';
import { createLogger, createMetrics, runService } from '@playline/runtime';
import type { Consumer } from '@playline/stream';
import { createSchemaRegistry, openBlockConsumer, openProducer } from '@playline/stream/kafka';
import { readConfig } from '../../services/event-writer/src/config.ts';
import { createNoFences } from '../../services/event-writer/src/fences.ts';
import { createPipeline } from '../../services/event-writer/src/pipeline.ts';

const config = readConfig(process.env);
const logger = createLogger({ service: 'writer-without-intents', level: config.LOG_LEVEL });
const metrics = createMetrics('writer-without-intents');
const { KAFKA_BROKERS: brokers, CLICKHOUSE_URL: url, CLICKHOUSE_DATABASE: database } = config;

await runService(logger, async (use) => {
  let consumer: Consumer | null = null;
  const { CLICKHOUSE_USER: user, CLICKHOUSE_PASSWORD: password } = config;
  const store = await use('event store', () => openEventStore({ url, user, password, database }));
  const { ADMIN_HOST: host, ADMIN_PORT: port } = config;
  const ready = { consumer: () => consumer?.ready() ?? false };
  await use('admin listener', () => openAdminServer({ host, port, ready, metrics }));
  const deadLetters = await use('dead letters', () => openProducer({ brokers, clientId: 'writer-without-intents' }));
  const pipeline = createPipeline({
    store,
    schemas: createSchemaRegistry({ url: config.SCHEMA_REGISTRY_URL }),
    fences: createNoFences(),
    deadLetters,
    metrics,
    topicPrefix: config.TOPIC_PREFIX,
    blockBytesMax: config.BLOCK_BYTES_MAX,
  });
  await pipeline.prefetch();
  const limits = {
    rowsMax: config.BLOCK_ROWS_MAX,
    bytesMax: config.BLOCK_BYTES_MAX,
    ageMaxMs: config.BLOCK_AGE_MAX_MS,
  };
  consumer = await use('consumer', () =>
    openBlockConsumer({
      brokers,
      groupId: config.CONSUMER_GROUP,
      topics: pipeline.topics,
      sink: pipeline.sink,
      limits,
      deadLetters,
      sessionTimeoutMs: config.SESSION_TIMEOUT_MS,
      logger,
      withoutIntents: true,
    }),
  );
});
