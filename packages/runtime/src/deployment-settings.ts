import { z } from 'zod';
import { settings } from './config.ts';
import { clickhouseSettings, kafkaSettings, registrySettings } from './connection-settings.ts';

/** The consumer group of each service, unless its settings name another one. */
export const GROUPS = {
  writer: 'event-writer',
  linker: 'identity-linker',
  activityWriter: 'activity-writer',
  minter: 'minter',
  eraser: 'eraser',
} as const;

/**
 * The group in which an event writer reads the access topics. It is not the group of the events: a member of an older
 * release could get partitions of a topic that it does not know, and a fault of one topic could delay the others.
 */
export const auditGroupOf = (writerGroup: string): string => `${writerGroup}-audit`;

/** The group in which an identity linker reads the topic of parked links. */
export const parkedGroupOf = (linkerGroup: string): string => `${linkerGroup}-parked`;

/** Settings that mean the same in every service that has them. A service takes the fragments it uses into its schema. */

/** What every process is told. A service with a usual port gives `ADMIN_PORT` a default. */
export const processSettings = {
  LOG_LEVEL: settings.logLevel().default('info'),
  /** Where readiness and metrics are served. */
  ADMIN_HOST: settings.text().default('127.0.0.1'),
  ADMIN_PORT: settings.port(),
  /** Put before every topic name and every transactional id. */
  TOPIC_PREFIX: z.string().default(''),
} as const;

/** Where a service answers its callers. A service with a usual port gives `HTTP_PORT` a default. */
export const listenerSettings = {
  HTTP_HOST: settings.text().default('127.0.0.1'),
  HTTP_PORT: settings.port(),
} as const;

/** A deployment has one value of each: every service that has the setting must be given the same. */
export const deploymentSettings = {
  /** What headers begin with. */
  HTTP_HEADER_PREFIX: z
    .string()
    .regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, 'expected lower-case words joined by hyphens')
    .default('x-service'),
  /** What access keys begin with. */
  ACCESS_KEY_PREFIX: z
    .string()
    .regex(/^[a-z0-9]+$/, 'expected lower-case letters and digits')
    .default('svcapik'),
  /** The setting of the chain API, of which the names of the chains are read: contracts of others cannot be linked. */
  CHAINS: settings
    .json()
    .pipe(z.array(z.looseObject({ name: z.string() }), 'expected a list of chains'))
    .transform((chains): readonly string[] => chains.map(({ name }) => name))
    .optional(),
  /**
   * Keys the hashes of ids: with another pepper an id gives an unknown key. As long as the output of the hash that it
   * is the key of.
   */
  IDENTITY_PEPPER: settings.secretHex(32),
  /**
   * Raise it by one whenever the link topic is made anew or gets another number of partitions: offsets of another
   * generation are other facts.
   */
  LINK_TOPIC_GENERATION: settings.integer(0, 255).default(0),
  /**
   * How far the clocks of two processes that accept messages and erasures may differ. The cut-off of an erasure is the
   * time of its request plus this time. Otherwise an event stamped by a process whose clock is ahead would survive.
   * Clocks kept by NTP differ by some tens of milliseconds.
   */
  ERASURE_CLOCK_SKEW_MS: settings.integer(500, 60_000).default(2000),
  /** CONSUMER_GROUP of the event writer: everything that it has committed is stored. */
  WRITER_GROUP: settings.text().default(GROUPS.writer),
  /** CONSUMER_GROUP of the identity linker: everything that it has committed is decided. */
  LINKER_GROUP: settings.text().default(GROUPS.linker),
} as const;

/** Settings of services that consume topics, some of which write the records in blocks: the same in each of them. */

/**
 * What a table remembers of the blocks it has stored: `non_replicated_deduplication_window` tokens, of all its partitions
 * together. A block takes one token for each partition of the table that it has rows of. A copy of an insert that a writer
 * left on its way, because it was frozen or cut off, is dropped by its token alone when it arrives. Ten minutes is far
 * beyond any time-out on that way, and ten minutes of blocks must fit: 166 a second, of all writers together.
 */
const BLOCKS_KEPT = 100_000;
const TOKEN_NEEDED_S = 600;
export const BLOCKS_PER_S_MAX: number = Math.floor(BLOCKS_KEPT / TOKEN_NEEDED_S);
/**
 * Most partitions of a table that the rows of one block are in. Event times of a block are within 59 days (30 days of age,
 * a day ahead, three days on the log, and 25 days for replayed dead letters), and 59 days are in three months at most.
 */
export const TABLE_PARTITIONS_A_BLOCK_MAX = 3;

/**
 * 166 blocks a second with 1,000 rows each are 166,000 rows: their inserts and merges take four cores of the engine.
 */
const BLOCK_ROWS_MIN = 1_000;
/** 1,000 rows of the usual 1 KiB. With rows of the largest size, 32 KiB, full blocks are 166 MiB a second. */
const BLOCK_BYTES_MIN = 1024 * 1024;
/** Blocks cut by age are four a second for each partition of a topic: 41 partitions of one topic make 166. */
const BLOCK_AGE_MIN_MS = 250;
/**
 * Time for two heartbeats: in the worst case one comes after a quarter of a session and a fetch that waits 150 ms. The
 * other half of the session is for a shutdown, which has time for ten inserts of tens of milliseconds. Brokers refuse
 * less than their `group.min.session.timeout.ms`, by default 6,000.
 */
const SESSION_TIMEOUT_MIN_MS = 1_000;

/** How long a consumer may be silent before its partitions go to another. */
export const consumerSettings = {
  SESSION_TIMEOUT_MS: settings.integer(SESSION_TIMEOUT_MIN_MS, 300_000).default(10_000),
} as const;

/** What a service is told that writes topics into ClickHouse: which stores it uses, and how it cuts blocks. */
export const blockWriterSettings = {
  ...processSettings,
  ...kafkaSettings,
  ...registrySettings,
  ...clickhouseSettings,
  ...consumerSettings,
  // One ClickHouse block an insert: above 1,048,449 rows an insert would be two blocks under one token.
  BLOCK_ROWS_MAX: settings.integer(BLOCK_ROWS_MIN, 1_000_000).default(10_000),
  BLOCK_BYTES_MAX: settings.integer(BLOCK_BYTES_MIN, 256 * 1024 * 1024).default(8 * 1024 * 1024),
  BLOCK_AGE_MAX_MS: settings.integer(BLOCK_AGE_MIN_MS, 60_000).default(1_000),
} as const;

type BlockWriterConfig = z.infer<z.ZodObject<typeof blockWriterSettings>>;

/** When a block ends: after so many rows or bytes, or so long after its first record. */
export function toBlockLimits(
  config: Pick<BlockWriterConfig, 'BLOCK_ROWS_MAX' | 'BLOCK_BYTES_MAX' | 'BLOCK_AGE_MAX_MS'>,
) {
  return { rowsMax: config.BLOCK_ROWS_MAX, bytesMax: config.BLOCK_BYTES_MAX, ageMaxMs: config.BLOCK_AGE_MAX_MS };
}
