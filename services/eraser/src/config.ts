import {
  clickhouseClusterSettings,
  clickhouseSettings,
  consumerSettings,
  deploymentSettings,
  GROUPS,
  kafkaSettings,
  processSettings,
  redisSettings,
  registrySettings,
  settings,
  tracingSettings,
} from '@playline/runtime';
import { z } from 'zod';

/** Time of day in UTC, as minutes after midnight. */
const timeOfDay = z
  .string()
  .regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'expected a time of day in UTC, such as 03:30')
  .transform((text) => Number(text.slice(0, 2)) * 60 + Number(text.slice(3)));

/** Eraser settings, keyed by environment variable. */
export const configSchema = z.object({
  ...processSettings,
  ...tracingSettings,
  ADMIN_PORT: processSettings.ADMIN_PORT.default(8084),
  ...kafkaSettings,
  ...registrySettings,
  ...redisSettings,
  ...clickhouseSettings,
  ...clickhouseClusterSettings,
  ...consumerSettings,
  /** Consumer group of the service. */
  CONSUMER_GROUP: settings.text().default(GROUPS.eraser),
  /** Consumer groups whose committed offsets show which records are stored. */
  LINKER_GROUP: deploymentSettings.LINKER_GROUP,
  WRITER_GROUP: deploymentSettings.WRITER_GROUP,
  LINK_TOPIC_GENERATION: deploymentSettings.LINK_TOPIC_GENERATION,
  /** Time during which requests are collected for a batch. */
  BATCH_WINDOW_MS: settings.integer(0, 60_000).default(2_000),
  /** Maximum number of requests per batch; 1,000 requests take about a minute. */
  BATCH_REQUESTS_MAX: settings.integer(1, 10_000).default(1_000),
  /** Time of the daily search for rows of erased people. */
  SCRUB_AT: timeOfDay.prefault('02:30'),
  /** Time of the daily removal of deleted rows from files. Erasures wait during the removal. */
  REMOVAL_AT: timeOfDay.prefault('03:00'),
});

export type Config = z.infer<typeof configSchema>;
