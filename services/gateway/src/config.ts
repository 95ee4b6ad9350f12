import { BATCH_BYTES_MAX, EVENT_AGE_MAX_MS, EVENT_AHEAD_MAX_MS } from '@playline/contracts';
import {
  deploymentSettings,
  kafkaSettings,
  listenerSettings,
  processSettings,
  redisSettings,
  registrySettings,
  settings,
  tracingSettings,
} from '@playline/runtime';
import { z } from 'zod';
import { rateLimitSettings } from './rate-limits/settings.ts';

/** The partitioning of the events table does not allow a larger window. */
const WINDOW_MAX_MS = 366 * 24 * 60 * 60 * 1000;

export const configSchema = z.object({
  ...processSettings,
  ...tracingSettings,
  ...listenerSettings,
  HTTP_PORT: listenerSettings.HTTP_PORT.default(8080),
  ADMIN_PORT: processSettings.ADMIN_PORT.default(8081),
  /** Base URL of `link` in error envelopes. */
  PUBLIC_URL: settings.baseUrl().optional(),
  /** Chain API URL for the commands that pages show. */
  CHAIN_API_URL: settings.baseUrl().optional(),
  /** ClickHouse URL for analysts, which pages show. */
  CLICKHOUSE_PUBLIC_URL: settings.baseUrl().optional(),
  HTTP_HEADER_PREFIX: deploymentSettings.HTTP_HEADER_PREFIX,
  ACCESS_KEY_PREFIX: deploymentSettings.ACCESS_KEY_PREFIX,
  ...kafkaSettings,
  ...registrySettings,
  ...redisSettings,
  IDENTITY_PEPPER: deploymentSettings.IDENTITY_PEPPER,
  /** Maximum request bytes in memory. At least two batches of the maximum size, so that one cannot block all others. */
  BYTES_IN_FLIGHT_MAX: settings.integer(2 * BATCH_BYTES_MAX, 2 ** 31).default(16 * BATCH_BYTES_MAX),
  /**
   * Maximum time that a request waits for the brokers before it returns 500. The upper bound of 20 s is shorter
   * than a drain (25 s), and limits how much of the log a comparison of consents must read.
   */
  PUBLISH_DEADLINE_MS: settings.integer(100, 20_000).default(2500),
  /** Maximum age of an accepted eventTimestamp. */
  EVENT_AGE_MAX_MS: settings.integer(0, WINDOW_MAX_MS).default(EVENT_AGE_MAX_MS),
  /** Maximum time by which an accepted eventTimestamp may be ahead of the gateway's clock. */
  EVENT_AHEAD_MAX_MS: settings.integer(0, WINDOW_MAX_MS).default(EVENT_AHEAD_MAX_MS),
  ERASURE_CLOCK_SKEW_MS: deploymentSettings.ERASURE_CLOCK_SKEW_MS,
  /** Comma-separated `context.library` names that rejection records may contain. */
  CLIENT_LIBRARIES: settings
    .text()
    .default('playline-audience-client,audience-web,audience-pixel,audience-unity,audience-unreal')
    .transform((names) => names.split(',').map((name) => name.trim())),
  ...rateLimitSettings,
});

export type Config = z.infer<typeof configSchema>;
