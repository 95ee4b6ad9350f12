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

/** The event writer's separate group for access topics, so that their faults cannot delay events. */
export const auditGroupOf = (writerGroup: string): string => `${writerGroup}-audit`;

export const parkedGroupOf = (linkerGroup: string): string => `${linkerGroup}-parked`;

/** Settings that mean the same in every service. */

export const processSettings = {
  /** Minimum level that is logged. */
  LOG_LEVEL: settings.logLevel().default('info'),
  /** Listen address for readiness and metrics. */
  ADMIN_HOST: settings.text().default('127.0.0.1'),
  /** Port for readiness and metrics. */
  ADMIN_PORT: settings.port(),
  /** Prefix of every topic name and every transactional id. */
  TOPIC_PREFIX: z.string().default(''),
} as const;

export const listenerSettings = {
  /** Address of the HTTP listener. */
  HTTP_HOST: settings.text().default('127.0.0.1'),
  /** Port of the HTTP listener. */
  HTTP_PORT: settings.port(),
} as const;

/** Settings that must be the same in the whole deployment. */
export const deploymentSettings = {
  /** Prefix of header names. */
  HTTP_HEADER_PREFIX: z
    .string()
    .regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, 'expected lower-case letters and digits with hyphens in between')
    .default('x-service'),
  /** Prefix of access keys. */
  ACCESS_KEY_PREFIX: z
    .string()
    .regex(/^[a-z0-9]+$/, 'expected lower-case letters and digits')
    .default('svcapik'),
  /** The chain API's setting, of which only the names of the chains are used. */
  CHAINS: settings
    .json()
    .pipe(z.array(z.looseObject({ name: z.string() }), 'expected a list of chains'))
    .transform((chains): readonly string[] => chains.map(({ name }) => name))
    .optional(),
  /** Key for hashing ids: a different pepper produces different identity keys. As long as the hashes. */
  IDENTITY_PEPPER: settings.secretHex(32),
  /** Must be increased when the link topic is recreated or gets a different number of partitions, because offsets then repeat. */
  LINK_TOPIC_GENERATION: settings.integer(0, 255).default(0),
  /**
   * How far the clocks of two processes may differ. It is added to the cut-off of an erasure, so that no event survives
   * that a process with a fast clock has stamped. Clocks kept by NTP differ by some tens of milliseconds.
   */
  ERASURE_CLOCK_SKEW_MS: settings.integer(500, 60_000).default(2000),
  /** CONSUMER_GROUP of the event writer: everything that it has committed is stored. */
  WRITER_GROUP: settings.text().default(GROUPS.writer),
  /** CONSUMER_GROUP of the identity linker: everything that it has committed is decided. */
  LINKER_GROUP: settings.text().default(GROUPS.linker),
} as const;

/**
 * Tokens that a table keeps (`non_replicated_deduplication_window`). A block uses one per table partition of its rows.
 * Late copies of an insert are dropped by token only, so the tokens of ten minutes must fit: 166 blocks per second.
 */
const BLOCKS_KEPT = 100_000;
const TOKEN_NEEDED_S = 600;
export const BLOCKS_PER_S_MAX: number = Math.floor(BLOCKS_KEPT / TOKEN_NEEDED_S);
/** Event times in a block span 59 days (age, one day ahead, log, replayed dead letters): at most three months. */
export const TABLE_PARTITIONS_A_BLOCK_MAX = 3;

/** At 166 blocks of 1,000 rows per second, ClickHouse uses four cores. */
const BLOCK_ROWS_MIN = 1_000;
/** 1,000 rows of the usual size, 1 KiB. */
const BLOCK_BYTES_MIN = 1024 * 1024;
/** Four blocks per second and partition: 41 partitions reach 166 blocks per second. */
const BLOCK_AGE_MIN_MS = 250;
/**
 * Two heartbeats fit into half a session timeout, and a shutdown into the other half. Brokers refuse values below
 * `group.min.session.timeout.ms`, by default 6,000.
 */
const SESSION_TIMEOUT_MIN_MS = 1_000;

export const consumerSettings = {
  /** A consumer without heartbeats for this long loses its partitions. */
  SESSION_TIMEOUT_MS: settings.integer(SESSION_TIMEOUT_MIN_MS, 300_000).default(10_000),
} as const;

export const blockWriterSettings = {
  ...processSettings,
  ...kafkaSettings,
  ...registrySettings,
  ...clickhouseSettings,
  ...consumerSettings,
  // An insert of more than 1,048,449 rows would become two ClickHouse blocks under one token.
  /** Maximum rows per block. */
  BLOCK_ROWS_MAX: settings.integer(BLOCK_ROWS_MIN, 1_000_000).default(10_000),
  /** Maximum bytes of records per block. */
  BLOCK_BYTES_MAX: settings.integer(BLOCK_BYTES_MIN, 256 * 1024 * 1024).default(8 * 1024 * 1024),
  /** Maximum time from the first record of a block to its insert. */
  BLOCK_AGE_MAX_MS: settings.integer(BLOCK_AGE_MIN_MS, 60_000).default(1_000),
} as const;

type BlockWriterConfig = z.infer<z.ZodObject<typeof blockWriterSettings>>;

export function toBlockLimits(
  config: Pick<BlockWriterConfig, 'BLOCK_ROWS_MAX' | 'BLOCK_BYTES_MAX' | 'BLOCK_AGE_MAX_MS'>,
) {
  return { rowsMax: config.BLOCK_ROWS_MAX, bytesMax: config.BLOCK_BYTES_MAX, ageMaxMs: config.BLOCK_AGE_MAX_MS };
}
