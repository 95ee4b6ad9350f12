import { parseSignerPublicKey } from '@playline/access-keys';
import { chainNodes } from '@playline/chain';
import {
  clickhouseSettings,
  deploymentSettings,
  kafkaSettings,
  processSettings,
  redisSettings,
  registrySettings,
  settings,
} from '@playline/runtime';
import { z } from 'zod';

/** Settings of the commands. A command reports a required address that is missing. */
export const configSchema = z.object({
  ...redisSettings,
  REDIS_URL: redisSettings.REDIS_URL.optional(),
  ...kafkaSettings,
  KAFKA_BROKERS: kafkaSettings.KAFKA_BROKERS.optional(),
  ...registrySettings,
  SCHEMA_REGISTRY_URL: registrySettings.SCHEMA_REGISTRY_URL.optional(),
  ...clickhouseSettings,
  CLICKHOUSE_URL: clickhouseSettings.CLICKHOUSE_URL.optional(),
  CLICKHOUSE_USER: clickhouseSettings.CLICKHOUSE_USER.default('operator'),
  CLICKHOUSE_DATABASE: clickhouseSettings.CLICKHOUSE_DATABASE.default('playline'),
  TOPIC_PREFIX: processSettings.TOPIC_PREFIX,
  LINK_TOPIC_GENERATION: deploymentSettings.LINK_TOPIC_GENERATION,
  IDENTITY_PEPPER: deploymentSettings.IDENTITY_PEPPER.optional(),
  /** Public key of the signer, to which signable keys are sealed: a JWK, or its base64url. */
  SIGNER_PUBLIC_KEY: settings.parsed(parseSignerPublicKey).optional(),
  /** As for the chain indexer. */
  CHAIN_NODES: chainNodes().optional(),
  /** As for the chain API: contracts are linked only on served chains. */
  CHAINS: deploymentSettings.CHAINS,
  ACCESS_KEY_PREFIX: deploymentSettings.ACCESS_KEY_PREFIX,
});

export type OperatorConfig = z.infer<typeof configSchema>;
