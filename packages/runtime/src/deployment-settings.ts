/** Settings that mean the same in every service that has them. A service takes the fragments it uses into its schema. */
import { z } from 'zod';
import { settings } from './config.ts';
import { GROUPS } from './groups.ts';

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
