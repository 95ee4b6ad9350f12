import { blockWriterSettings, parseConfig, redisSettings, settings } from '@playline/runtime';
import { z } from 'zod';

/** Settings of the activity writer, by the names of their environment variables. */
export const configSchema = z.object({
  ...blockWriterSettings,
  ...redisSettings,
  CONSUMER_GROUP: settings.text().default('activity-writer'),
});

export type Config = z.infer<typeof configSchema>;

/** Settings of the activity writer. @throws ConfigError naming every setting that is missing or wrong */
export function readConfig(environment: Record<string, string | undefined>): Config {
  return parseConfig(configSchema, environment);
}
