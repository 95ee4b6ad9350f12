import { randomBytes } from 'node:crypto';
import type { Stack } from '@playline/infra/local';
import { SMALL_BLOCKS } from '../small-blocks.ts';
import type { Deployment } from './deployment.ts';
import type { ServiceName } from './service-process.ts';
import type { Wires } from './wires.ts';

/** Two seconds: a member that was killed or frozen is missed soon, and a busy machine still beats in time. */
const SESSION_TIMEOUT_MS = 2_000;
/** Many small blocks: many moments between intent, insert and commit for a cut to fall into. */
const BLOCK_AGE_MAX_MS = 100;
/** The same in every process of a world: keys of identities must agree. */
const PEPPER = randomBytes(32).toString('hex');

/** Settings of a service: it reaches every store through a wire of the test, except where there are several brokers. */
export function environmentOf(
  service: ServiceName,
  { stack, wires, deployment }: { stack: Stack; wires: Wires; deployment: Deployment },
): Record<string, string> {
  const through = (address: string, port: number) => address.replace(/:\d+(?=\/|$)/, `:${port}`);
  const { engine, topicPrefix } = deployment;
  const environment: Record<string, string> = {
    LOG_LEVEL: 'info',
    KAFKA_BROKERS: stack.kafkaFront === null ? stack.file.kafka.join(',') : `127.0.0.1:${wires.kafka.port}`,
    SCHEMA_REGISTRY_URL: through(stack.file.registry, wires.registry.port),
    REDIS_URL: through(stack.file.redis, wires.redis.port),
    CLICKHOUSE_URL: through(engine.url, wires.clickhouse.port),
    CLICKHOUSE_USER: engine.user,
    CLICKHOUSE_PASSWORD: engine.password,
    CLICKHOUSE_DATABASE: engine.database,
    IDENTITY_PEPPER: PEPPER,
    TOPIC_PREFIX: topicPrefix,
    CONSUMER_GROUP: groupOf(service, deployment),
    SESSION_TIMEOUT_MS: String(SESSION_TIMEOUT_MS),
    BLOCK_AGE_MAX_MS: String(BLOCK_AGE_MAX_MS),
    ...SMALL_BLOCKS,
    KAFKAJS_NO_PARTITIONER_WARNING: '1',
    // The limits have tests of their own; here they would only hide what the stores do.
    RATE_LIMIT_MESSAGES_PER_S: '200000',
    RATE_LIMIT_BURST: '10000000',
  };
  return environment;
}

/** Consumer group of a service in a deployment: a renewed deployment begins with empty groups. */
export const groupOf = (service: ServiceName, deployment: Deployment): string => `${deployment.topicPrefix}${service}`;
