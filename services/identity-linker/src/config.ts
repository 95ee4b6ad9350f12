import { IDENTITY_TYPES } from '@playline/contracts';
import {
  consumerSettings,
  deploymentSettings,
  kafkaSettings,
  processSettings,
  redisSettings,
  registrySettings,
  settings,
} from '@playline/runtime';
import { z } from 'zod';

/** Example: `{"demo-production":["player"]}`. */
const blockedIds = settings.json().pipe(z.record(z.string(), z.array(z.string())));

const uniqueTypes = z
  .string()
  .transform((list) => list.split(',').map((type) => type.trim()))
  .pipe(z.array(z.enum(IDENTITY_TYPES)));

export const configSchema = z.object({
  ...processSettings,
  ADMIN_PORT: processSettings.ADMIN_PORT.default(8082),
  ...kafkaSettings,
  ...registrySettings,
  ...redisSettings,
  ...consumerSettings,
  CONSUMER_GROUP: deploymentSettings.LINKER_GROUP,
  IDENTITY_PEPPER: deploymentSettings.IDENTITY_PEPPER,
  LINK_TOPIC_GENERATION: deploymentSettings.LINK_TOPIC_GENERATION,
  /** Identity types of which a person can have at most one. */
  UNIQUE_IDENTITY_TYPES: uniqueTypes.default(['passport']),
  /** Ids that are never linked, per environment, in addition to the built-in list. */
  BLOCKED_IDS: blockedIds.default({}),
});

export type Config = z.infer<typeof configSchema>;
