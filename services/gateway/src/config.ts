import { BATCH_BYTES_MAX, EVENT_AGE_MAX_MS, EVENT_AHEAD_MAX_MS } from '@playline/contracts';
import {
  deploymentSettings,
  kafkaSettings,
  listenerSettings,
  processSettings,
  redisSettings,
  registrySettings,
  settings,
} from '@playline/runtime';
import { z } from 'zod';
import { rateLimitSettings } from './rate-limits/settings.ts';

/** An older event, or one further ahead, would not fit the partitions of the events table. */
const WINDOW_MAX_MS = 366 * 24 * 60 * 60 * 1000;

/** Settings of the gateway, by the names of their environment variables. */
export const configSchema = z.object({
  ...processSettings,
  ...listenerSettings,
  HTTP_PORT: listenerSettings.HTTP_PORT.default(8080),
  ADMIN_PORT: processSettings.ADMIN_PORT.default(8081),
  /** Base of the `link` in error envelopes. */
  PUBLIC_URL: settings.baseUrl().optional(),
  HTTP_HEADER_PREFIX: deploymentSettings.HTTP_HEADER_PREFIX,
  ACCESS_KEY_PREFIX: deploymentSettings.ACCESS_KEY_PREFIX,
  ...kafkaSettings,
  ...registrySettings,
  ...redisSettings,
  IDENTITY_PEPPER: deploymentSettings.IDENTITY_PEPPER,
  /** Room for sixteen of the largest batches. At least two, so that one large batch does not keep out all others. */
  BYTES_IN_FLIGHT_MAX: settings.integer(2 * BATCH_BYTES_MAX, 2 ** 31).default(16 * BATCH_BYTES_MAX),
  /**
   * How long a request waits for the brokers before it is answered with 500: within 3 s of the brokers going away.
   * At least 100 ms, which a healthy write never takes. A 500 that comes too soon loses nothing, since the client sends
   * the same ids again. At most 20 s: a request then fits into the 25 s of a drain, and a catch-up of consents reads
   * only a bounded end of the log.
   */
  PUBLISH_DEADLINE_MS: settings.integer(100, 20_000).default(2500),
  EVENT_AGE_MAX_MS: settings.integer(0, WINDOW_MAX_MS).default(EVENT_AGE_MAX_MS),
  EVENT_AHEAD_MAX_MS: settings.integer(0, WINDOW_MAX_MS).default(EVENT_AHEAD_MAX_MS),
  ERASURE_CLOCK_SKEW_MS: deploymentSettings.ERASURE_CLOCK_SKEW_MS,
  /** Comma-separated names of client libraries (`context.library`) that rejection records may contain. */
  CLIENT_LIBRARIES: settings
    .text()
    .default('playline-audience-client,audience-web,audience-pixel,audience-unity,audience-unreal')
    .transform((names) => names.split(',').map((name) => name.trim())),
  ...rateLimitSettings,
});

export type Config = z.infer<typeof configSchema>;
