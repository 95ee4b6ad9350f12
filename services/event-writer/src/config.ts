import { clickhouseSettings, kafkaSettings, parseConfig, registrySettings, settings } from '@playline/runtime';
import { z } from 'zod';

/** Settings of the event writer, by the names of their environment variables. */
export const configSchema = z.object({
  LOG_LEVEL: settings.logLevel().default('info'),
  ...kafkaSettings,
  ...registrySettings,
  ...clickhouseSettings,
  /** Put before every topic name. */
  TOPIC_PREFIX: z.string().default(''),
  CONSUMER_GROUP: settings.text().default('event-writer'),
  ADMIN_HOST: settings.text().default('127.0.0.1'),
  ADMIN_PORT: settings.port(),
  SESSION_TIMEOUT_MS: settings.integer(1_000, 300_000).default(10_000),
  // One ClickHouse block an insert: above 1,048,449 rows an insert would be two blocks under one token.
  BLOCK_ROWS_MAX: settings.integer(1, 1_000_000).default(10_000),
  BLOCK_BYTES_MAX: settings.integer(1_024, 256 * 1024 * 1024).default(8 * 1024 * 1024),
  BLOCK_AGE_MAX_MS: settings.integer(1, 60_000).default(1_000),
});

export type Config = z.infer<typeof configSchema>;

/** Settings of the event writer. @throws ConfigError naming every setting that is missing or wrong */
export function readConfig(environment: Record<string, string | undefined>): Config {
  return parseConfig(configSchema, environment);
}
