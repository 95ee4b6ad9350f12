import { z } from 'zod';
import { settings } from './config.ts';
import { clickhouseSettings, kafkaSettings, registrySettings } from './connection-settings.ts';

export const GROUPS = {
  writer: 'event-writer',
  linker: 'identity-linker',
  activityWriter: 'activity-writer',
  minter: 'minter',
  eraser: 'eraser',
} as const;

/** A separate consumer group for access topics, so that their faults cannot delay events. */
export const auditGroupOf = (writerGroup: string): string => `${writerGroup}-audit`;

export const parkedGroupOf = (linkerGroup: string): string => `${linkerGroup}-parked`;

/** Settings with the same meaning in every service. */

export const processSettings = {
  /** Minimum level of log lines. */
  LOG_LEVEL: settings.logLevel().default('info'),
  /** Listen address for readiness and metrics. */
  ADMIN_HOST: settings.text().default('127.0.0.1'),
  /** Port for readiness and metrics. */
  ADMIN_PORT: settings.port(),
  /** Prefix of all topic names and transactional IDs. */
  TOPIC_PREFIX: z.string().default(''),
} as const;

export const tracingSettings = {
  /** URL of an OpenTelemetry collector for OTLP over HTTP, such as `http://localhost:4318`; enables traces. */
  OTEL_EXPORTER_OTLP_ENDPOINT: settings.baseUrl().optional(),
  /** Share of traces that are recorded, from 0 to 1. */
  OTEL_TRACES_SAMPLER_ARG: settings.ratio().default(0.01),
} as const;

export const listenerSettings = {
  /** Address of the HTTP listener. */
  HTTP_HOST: settings.text().default('127.0.0.1'),
  /** Port of the HTTP listener. */
  HTTP_PORT: settings.port(),
} as const;

/** Settings whose value must be the same in the whole deployment. */
export const deploymentSettings = {
  /** Prefix of the product's HTTP headers. */
  HTTP_HEADER_PREFIX: z
    .string()
    .regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, 'expected lower-case letters and digits, separated by hyphens')
    .default('x-service'),
  /** Prefix of access keys. */
  ACCESS_KEY_PREFIX: z
    .string()
    .regex(/^[a-z0-9]+$/, 'expected lower-case letters and digits')
    .default('svcapik'),
  /** The chain API's chains. Only their names are used. */
  CHAINS: settings
    .json()
    .pipe(z.array(z.looseObject({ name: z.string() }), 'expected a list of chains'))
    .transform((chains): readonly string[] => chains.map(({ name }) => name))
    .optional(),
  /** Key for hashing ids: a different pepper produces different identity keys. At least as long as the hashes. */
  IDENTITY_PEPPER: settings.secretHex(32),
  /** Increase when the link topic is recreated or its number of partitions changes, because offsets then repeat. */
  LINK_TOPIC_GENERATION: settings.integer(0, 255).default(0),
  /**
   * Maximum difference between the clocks of two processes. Added to the cut-off of an erasure, so that events with a
   * timestamp from a fast clock are deleted as well. Clocks synchronized with NTP differ by tens of milliseconds.
   */
  ERASURE_CLOCK_SKEW_MS: settings.integer(500, 60_000).default(2000),
  /** The event writer's CONSUMER_GROUP. Everything that this group has committed is stored. */
  WRITER_GROUP: settings.text().default(GROUPS.writer),
  /** The identity linker's CONSUMER_GROUP. Everything that this group has committed is decided. */
  LINKER_GROUP: settings.text().default(GROUPS.linker),
} as const;

/**
 * How many tokens a table retains (`non_replicated_deduplication_window`). A block uses one token per table partition.
 * Late copies of an insert are dropped only by token, so a table must retain the tokens from the last ten minutes,
 * which allows 166 blocks per second.
 */
const TOKENS_RETAINED = 100_000;
const TOKEN_RETENTION_MIN_S = 600;
export const BLOCKS_PER_S_MAX: number = Math.floor(TOKENS_RETAINED / TOKEN_RETENTION_MIN_S);
/** Event times in a block span at most 59 days (age, one day ahead, log, dead letters), so at most three months. */
export const TABLE_PARTITIONS_PER_BLOCK_MAX = 3;

/** With 166 blocks of 1,000 rows per second, ClickHouse uses four cores. */
const BLOCK_ROWS_MIN = 1_000;
/** 1,000 rows of typical size, 1 KiB. */
const BLOCK_BYTES_MIN = 1024 * 1024;
/** At four blocks per second and partition, 41 partitions reach 166 blocks per second. */
const BLOCK_AGE_MIN_MS = 250;
/**
 * Half a session timeout is enough for two heartbeats, and the other half for a shutdown. Brokers reject values below
 * `group.min.session.timeout.ms`, by default 6,000.
 */
const SESSION_TIMEOUT_MIN_MS = 1_000;

export const consumerSettings = {
  /** A consumer that sends no heartbeat for this long loses its partitions. */
  SESSION_TIMEOUT_MS: settings.integer(SESSION_TIMEOUT_MIN_MS, 300_000).default(10_000),
} as const;

export const blockWriterSettings = {
  ...processSettings,
  ...tracingSettings,
  ...kafkaSettings,
  ...registrySettings,
  ...clickhouseSettings,
  ...consumerSettings,
  // ClickHouse would split an insert of more than 1,048,449 rows into two blocks with the same token.
  /** Maximum rows per block. */
  BLOCK_ROWS_MAX: settings.integer(BLOCK_ROWS_MIN, 1_000_000).default(20_000),
  /** Maximum record bytes per block. */
  BLOCK_BYTES_MAX: settings.integer(BLOCK_BYTES_MIN, 256 * 1024 * 1024).default(16 * 1024 * 1024),
  /** Maximum time from a block's first record to its insert. */
  BLOCK_AGE_MAX_MS: settings.integer(BLOCK_AGE_MIN_MS, 60_000).default(1_000),
} as const;

type BlockWriterConfig = z.infer<z.ZodObject<typeof blockWriterSettings>>;

export function toBlockLimits(
  config: Pick<BlockWriterConfig, 'BLOCK_ROWS_MAX' | 'BLOCK_BYTES_MAX' | 'BLOCK_AGE_MAX_MS'>,
) {
  return { rowsMax: config.BLOCK_ROWS_MAX, bytesMax: config.BLOCK_BYTES_MAX, ageMaxMs: config.BLOCK_AGE_MAX_MS };
}
