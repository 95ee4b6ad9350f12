import { parseSignerPublicKey } from '@playline/access-keys';
import { chainNodes } from '@playline/chain';
import { clickhouseSettings, kafkaSettings, redisSettings, registrySettings, settings } from '@playline/runtime';
import { z } from 'zod';

/** Settings of the operator's commands; a command that needs an address that nobody has told says so. */
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
  /** Put before every topic name. */
  TOPIC_PREFIX: z.string().default(''),
  /** As the linkers have it: offsets of another generation mean other facts. */
  LINK_TOPIC_GENERATION: settings.integer(0, 255).default(0),
  /** The same as gateways and linkers have: with another one an id gives a key that belongs to nobody. */
  IDENTITY_PEPPER: settings.secretHex(32).optional(),
  /** What private keys of signable keys are sealed to: the public half of whatever signs, JWK or base64url of it. */
  SIGNER_PUBLIC_KEY: settings.parsed(parseSignerPublicKey).optional(),
  /** The same as the chain indexer has: which chains there are, and the addresses of their nodes. */
  CHAIN_NODES: chainNodes().optional(),
  ACCESS_KEY_PREFIX: settings.text().default('svcapik'),
  HTTP_HEADER_PREFIX: settings.text().default('x-service'),
});

export type OperatorConfig = z.infer<typeof configSchema>;
