import { settings } from '@playline/runtime';
import { z } from 'zod';

/** Settings of the operator's commands; a command that needs an address that nobody has told says so. */
export const configSchema = z.object({
  REDIS_URL: settings.url().optional(),
  KAFKA_BROKERS: settings.brokers().optional(),
  SCHEMA_REGISTRY_URL: settings.url().optional(),
  CLICKHOUSE_URL: settings.url().optional(),
  CLICKHOUSE_USER: settings.text().default('operator'),
  CLICKHOUSE_PASSWORD: z.string().default(''),
  CLICKHOUSE_DATABASE: settings.text().default('playline'),
  /** Put before every topic name. */
  TOPIC_PREFIX: z.string().default(''),
  /** As the linkers have it: offsets of another generation mean other facts. */
  LINK_TOPIC_GENERATION: settings.integer(0, 255).default(0),
  ACCESS_KEY_PREFIX: settings.text().default('svcapik'),
  HTTP_HEADER_PREFIX: settings.text().default('x-service'),
});

export type OperatorConfig = z.infer<typeof configSchema>;
