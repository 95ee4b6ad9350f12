import { randomBytes } from 'node:crypto';
import type { Stack } from '@playline/infra/local';
import { SMALL_BLOCKS } from '../small-blocks.ts';
import type { Deployment } from './deployment.ts';
import type { ServiceName } from './service-process.ts';
import type { Wires } from './wires.ts';

/** The same in every process of a world, because identity keys must agree. */
const PEPPER = randomBytes(32).toString('hex');

/** Settings of a service. It reaches every store through a wire, except in a cluster of several brokers. */
export function environmentOf(
  service: ServiceName,
  { stack, wires, deployment }: { stack: Stack; wires: Wires; deployment: Deployment },
): Record<string, string> {
  const through = (address: string, port: number) => address.replace(/:\d+(?=\/|$)/, `:${port}`);
  const { engine, topicPrefix } = deployment;
  return {
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
    // A killed or frozen member is replaced soon, but heartbeats arrive in time on a busy machine.
    SESSION_TIMEOUT_MS: '2000',
    // Many small blocks, so that a fault often hits between intent, insert and commit.
    BLOCK_AGE_MAX_MS: '100',
    ...SMALL_BLOCKS,
    KAFKAJS_NO_PARTITIONER_WARNING: '1',
    // Rate limits have their own tests. Here they would only hide the effect of store faults.
    RATE_LIMIT_MESSAGES_PER_S: '200000',
    RATE_LIMIT_BURST: '10000000',
  };
}

export const groupOf = (service: ServiceName, deployment: Deployment): string => `${deployment.topicPrefix}${service}`;
