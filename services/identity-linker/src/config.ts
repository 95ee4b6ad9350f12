import { IDENTITY_TYPES } from '@playline/contracts';
import { kafkaSettings, redisSettings, registrySettings, settings } from '@playline/runtime';
import { z } from 'zod';

/** A list of text for each environment: `{"demo-production":["player"]}`. */
const blockedIds = z
  .string()
  .transform((text, context): unknown => {
    try {
      return JSON.parse(text);
    } catch {
      context.addIssue({ code: 'custom', message: 'expected JSON' });
      return z.NEVER;
    }
  })
  .pipe(z.record(z.string(), z.array(z.string())));

const uniqueTypes = z
  .string()
  .transform((text) => text.split(',').map((type) => type.trim()))
  .pipe(z.array(z.enum(IDENTITY_TYPES)));

/** Settings of the identity linker, by the names of their environment variables. */
export const configSchema = z.object({
  LOG_LEVEL: settings.logLevel().default('info'),
  ADMIN_HOST: settings.text().default('127.0.0.1'),
  ADMIN_PORT: settings.port().default(8082),
  ...kafkaSettings,
  ...registrySettings,
  ...redisSettings,
  /** Put before every topic name. */
  TOPIC_PREFIX: z.string().default(''),
  CONSUMER_GROUP: settings.text().default('identity-linker'),
  SESSION_TIMEOUT_MS: settings.integer(1_000, 300_000).default(10_000),
  /** As long as the output of the hash that it is the key of. The same in every service. */
  IDENTITY_PEPPER: settings.secretHex(32),
  /** Raise it by one whenever the link topic is made anew or gets another number of partitions. */
  LINK_TOPIC_GENERATION: settings.integer(0, 255).default(0),
  /** Identity types of which a person may have only one value, so alias does not join two. */
  UNIQUE_IDENTITY_TYPES: uniqueTypes.default(['passport']),
  /** Further ids that may not link anybody, by environment. */
  BLOCKED_IDS: blockedIds.default({}),
});

export type Config = z.infer<typeof configSchema>;
