import { parseSignerPublicKey } from '@playline/access-keys';
import { clickhouseSettings, kafkaSettings, redisSettings, registrySettings, settings } from '@playline/runtime';
import { z } from 'zod';

/** Settings of the portal, by the names of their environment variables. */
export const configSchema = z.object({
  LOG_LEVEL: settings.logLevel().default('info'),
  HTTP_HOST: settings.text().default('127.0.0.1'),
  HTTP_PORT: settings.port().default(8084),
  ADMIN_HOST: settings.text().default('127.0.0.1'),
  ADMIN_PORT: settings.port().default(8085),
  /**
   * The one address under which people use the portal, such as `https://portal.example.com`; it answers under no other.
   * Absent: localhost with the portal's own port. Passkeys know names only, never an address of digits.
   */
  PORTAL_ORIGIN: settings
    .baseUrl()
    .refine((url) => new URL(url).pathname === '/', 'expected an address without a path')
    .optional(),
  /** Signs forms and links, and tells instances apart; the same in every process of one portal. */
  PORTAL_SECRET: settings.secretHex(32),
  /** What private keys of signable keys are sealed to: the public half of whatever signs. Absent: none can be made. */
  SIGNER_PUBLIC_KEY: settings.parsed(parseSignerPublicKey).optional(),
  ...kafkaSettings,
  ...registrySettings,
  ...redisSettings,
  ...clickhouseSettings,
  /** Put before every topic name. */
  TOPIC_PREFIX: z.string().default(''),
  /** Keys the ids that people look for; the same as the gateways'. Hexadecimal, 32 bytes at least. */
  IDENTITY_PEPPER: settings.secretHex(32),
  /** How far the clocks of two processes that take erasures and messages may lie apart; as the gateways have it. */
  ERASURE_CLOCK_SKEW_MS: settings.integer(500, 60_000).default(2000),
  /** CONSUMER_GROUP of the event writer: live messages are stored once it has committed them. */
  WRITER_GROUP: settings.text().default('event-writer'),
  /** As the gateways have them: what keys and headers are called. */
  ACCESS_KEY_PREFIX: settings.text().default('svcapik'),
  HTTP_HEADER_PREFIX: settings.text().default('x-service'),
  /** Where clients reach the gateway and the chain API: pages show commands that are ready to send. */
  GATEWAY_URL: settings.baseUrl().optional(),
  CHAIN_API_URL: settings.baseUrl().optional(),
  TRUSTED_PROXIES: settings.trustedProxies(),
});

export type Config = z.infer<typeof configSchema>;
