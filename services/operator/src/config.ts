import { parseSignerPublicKey } from '@playline/access-keys';
import { chainNodes } from '@playline/chain';
import { clickhouseSettings, kafkaSettings, redisSettings, registrySettings, settings } from '@playline/runtime';
import { z } from 'zod';

/** Settings of the operator's commands; a command without a required address says so. */
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
  /** Prefix of every topic name. */
  TOPIC_PREFIX: z.string().default(''),
  /** The same value as of the linkers: offsets of another generation are other facts. */
  LINK_TOPIC_GENERATION: settings.integer(0, 255).default(0),
  /** The same value as of gateways and linkers: with another pepper an id gives an unknown key. */
  IDENTITY_PEPPER: settings.secretHex(32).optional(),
  /** Public key that signable keys are sealed to, JWK or its base64url: its private half is the signer's. */
  SIGNER_PUBLIC_KEY: settings.parsed(parseSignerPublicKey).optional(),
  /** The same value as of the chain indexer: the chains and the addresses of their nodes. */
  CHAIN_NODES: chainNodes().optional(),
  ACCESS_KEY_PREFIX: settings.text().default('svcapik'),
  HTTP_HEADER_PREFIX: settings.text().default('x-service'),
});

export type OperatorConfig = z.infer<typeof configSchema>;
