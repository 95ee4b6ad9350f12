import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { acceptsRecords, CHECKOUT } from '@playline/infra/local';
import { GenericContainer, type StartedTestContainer, Wait } from 'testcontainers';
import type { TestStores } from './stores.ts';
import { until } from './until.ts';

const read = (path: string) => readFileSync(join(CHECKOUT, path), 'utf8');

/** Returns the image in docker-compose.yml. */
const imageOf = (repository: string): string =>
  new RegExp(`image: (${repository}:\\S+)`).exec(read('docker-compose.yml'))?.[1] ?? repository;
const KAFKA_PORT = 9092;
const START_MAX_MS = 120_000;
const CLICKHOUSE_FOLDER = '/etc/clickhouse-server';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

const ACCOUNTS =
  `OPERATOR WRITER READER PORTAL ACCOUNTS ANALYST VIEWS ANALYST_1 ANALYST_2 ANALYST_3 ANALYST_4 ANALYST_5 ANALYST_6
  ANALYST_7 ANALYST_8 ANALYST_RAW_1 ANALYST_RAW_2 ANALYST_RAW_3 ANALYST_RAW_4`.split(/\s+/);

const toHashes = (password: string): Record<string, string> =>
  Object.fromEntries(ACCOUNTS.map((name) => [`CLICKHOUSE_${name}_SHA256`, sha256(password)]));

/**
 * Kafka must advertise the mapped port, which is known only once the container is running. The container therefore
 * waits for a start script.
 */
async function startKafka(): Promise<StartedTestContainer> {
  const script = '/tmp/start.sh';
  const container = await new GenericContainer(imageOf('apache/kafka'))
    .withExposedPorts(KAFKA_PORT)
    .withEntrypoint(['sh', '-c', `echo waiting; while [ ! -f ${script} ]; do sleep 0.1; done; exec sh ${script}`])
    .withWaitStrategy(Wait.forLogMessage('waiting'))
    .start();
  const settings = {
    KAFKA_NODE_ID: 1,
    KAFKA_PROCESS_ROLES: 'broker,controller',
    KAFKA_CONTROLLER_QUORUM_VOTERS: '1@localhost:9093',
    KAFKA_CONTROLLER_LISTENER_NAMES: 'CONTROLLER',
    KAFKA_LISTENERS: `OUTSIDE://0.0.0.0:${KAFKA_PORT},INSIDE://localhost:9094,CONTROLLER://localhost:9093`,
    // The broker writes markers of transactions to itself, but cannot reach the mapped port.
    KAFKA_ADVERTISED_LISTENERS: `OUTSIDE://${container.getHost()}:${container.getMappedPort(KAFKA_PORT)},INSIDE://localhost:9094`,
    KAFKA_INTER_BROKER_LISTENER_NAME: 'INSIDE',
    KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: 'OUTSIDE:PLAINTEXT,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT',
    KAFKA_AUTO_CREATE_TOPICS_ENABLE: false,
    KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR: 1,
    KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR: 1,
    KAFKA_TRANSACTION_STATE_LOG_MIN_ISR: 1,
    KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS: 0,
    KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS: 1000,
    KAFKA_GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS: 1000,
    KAFKA_GROUP_CONSUMER_MIN_HEARTBEAT_INTERVAL_MS: 500,
    KAFKA_GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS: 1000,
  };
  const exports = Object.entries(settings).map(([name, value]) => `export ${name}='${value}'`);
  const content = [...exports, 'exec /etc/kafka/docker/run', ''].join('\n');
  await container.copyContentToContainer([{ content, target: script }]);
  const broker = `${container.getHost()}:${container.getMappedPort(KAFKA_PORT)}`;
  await until('Kafka stores records', () => acceptsRecords(broker), START_MAX_MS);
  return container;
}

function startRedis(password: string): Promise<StartedTestContainer> {
  return new GenericContainer(imageOf('redis'))
    .withExposedPorts(6379)
    .withCopyContentToContainer([{ content: read('infra/redis/redis.conf'), target: '/etc/redis.conf' }])
    .withCommand(['redis-server', '/etc/redis.conf', '--requirepass', password])
    .withWaitStrategy(Wait.forListeningPorts())
    .withStartupTimeout(START_MAX_MS)
    .start();
}

function startClickHouse(password: string): Promise<StartedTestContainer> {
  const settings = ['system-logs.xml', 'named-collections.xml', 'caches.xml'].map((name) => `config.d/${name}`);
  return new GenericContainer(imageOf('clickhouse/clickhouse-server'))
    .withExposedPorts(8123)
    .withCopyContentToContainer(
      ['users.xml', ...settings].map((path) => ({
        content: read(`infra/clickhouse/${basename(path)}`),
        target: `${CLICKHOUSE_FOLDER}/${path}`,
      })),
    )
    .withEnvironment({ CLICKHOUSE_SKIP_USER_SETUP: '1', ...toHashes(password), CLICKHOUSE_VIEWS_PASSWORD: password })
    .withWaitStrategy(Wait.forHttp('/ping', 8123))
    .withStartupTimeout(START_MAX_MS)
    .start();
}

function startRegistry(): Promise<StartedTestContainer> {
  return new GenericContainer(imageOf('apicurio/apicurio-registry'))
    .withExposedPorts(8080)
    .withWaitStrategy(Wait.forHttp('/apis/ccompat/v7/subjects', 8080))
    .withStartupTimeout(START_MAX_MS)
    .start();
}

export async function startContainers(): Promise<{ stores: TestStores; stop(): Promise<void> }> {
  const password = randomBytes(16).toString('hex');
  const started = await Promise.all([startKafka(), startRedis(password), startClickHouse(password), startRegistry()]);
  const [kafka, redis, clickhouse, registry] = started;
  const address = (container: StartedTestContainer, port: number) =>
    `${container.getHost()}:${container.getMappedPort(port)}`;
  return {
    stores: {
      kafka: [address(kafka, KAFKA_PORT)],
      redis: `redis://:${password}@${address(redis, 6379)}`,
      clickhouse: { url: `http://${address(clickhouse, 8123)}`, user: 'operator', password },
      portalPassword: password,
      viewsPassword: password,
      registry: `http://${address(registry, 8080)}/apis/ccompat/v7`,
    },
    async stop() {
      await Promise.all(started.map((container) => container.stop()));
    },
  };
}
