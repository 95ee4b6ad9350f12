import {
  blockSettings,
  clickhouseSettings,
  kafkaSettings,
  parseConfig,
  redisSettings,
  registrySettings,
  settings,
} from '@playline/runtime';
import { z } from 'zod';

/** Settings of the activity writer, by the names of their environment variables. */
export const configSchema = z.object({
  LOG_LEVEL: settings.logLevel().default('info'),
  ...kafkaSettings,
  ...registrySettings,
  ...clickhouseSettings,
  ...redisSettings,
  /** Prefix of every topic name. */
  TOPIC_PREFIX: z.string().default(''),
  CONSUMER_GROUP: settings.text().default('activity-writer'),
  ADMIN_HOST: settings.text().default('127.0.0.1'),
  ADMIN_PORT: settings.port(),
  ...blockSettings,
});

export type Config = z.infer<typeof configSchema>;

/** Settings of the activity writer. @throws ConfigError naming every setting that is missing or wrong */
export function readConfig(environment: Record<string, string | undefined>): Config {
  return parseConfig(configSchema, environment);
}
