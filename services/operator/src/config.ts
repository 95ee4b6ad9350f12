import { parseSignerPublicKey } from '@playline/access-keys';
import { chainNodes } from '@playline/chain';
import {
  clickhouseClusterSettings,
  clickhouseSettings,
  deploymentSettings,
  kafkaSettings,
  processSettings,
  redisSettings,
  registrySettings,
  settings,
} from '@playline/runtime';
import { z } from 'zod';

/** Settings of the commands. Addresses are optional here: a command reports a missing address when it needs one. */
export const configSchema = z.object({
  ...redisSettings,
  REDIS_URL: redisSettings.REDIS_URL.optional(),
  ...kafkaSettings,
  KAFKA_BROKERS: kafkaSettings.KAFKA_BROKERS.optional(),
  ...registrySettings,
  SCHEMA_REGISTRY_URL: registrySettings.SCHEMA_REGISTRY_URL.optional(),
  ...clickhouseSettings,
  ...clickhouseClusterSettings,
  CLICKHOUSE_URL: clickhouseSettings.CLICKHOUSE_URL.optional(),
  CLICKHOUSE_USER: clickhouseSettings.CLICKHOUSE_USER.default('operator'),
  CLICKHOUSE_DATABASE: clickhouseSettings.CLICKHOUSE_DATABASE.default('playline'),
  TOPIC_PREFIX: processSettings.TOPIC_PREFIX,
  LINK_TOPIC_GENERATION: deploymentSettings.LINK_TOPIC_GENERATION,
  IDENTITY_PEPPER: deploymentSettings.IDENTITY_PEPPER.optional(),
  /** The signer's public key, which encrypts signable keys: a JWK, plain or base64url-encoded. */
  SIGNER_PUBLIC_KEY: settings.parsed(parseSignerPublicKey).optional(),
  /** Chains and the URLs of their nodes, as a JSON array. */
  CHAIN_NODES: chainNodes().optional(),
  /** Chains that the chain API serves; contracts can be linked only on these chains. */
  CHAINS: deploymentSettings.CHAINS,
  ACCESS_KEY_PREFIX: deploymentSettings.ACCESS_KEY_PREFIX,
});

export type OperatorConfig = z.infer<typeof configSchema>;
