import { PLAN_MAX, PLAN_WINDOW_S } from '@playline/access-keys';
import { chainNodes } from '@playline/chain';
import { CURSOR_KEY, type CursorKey, isChainName, TOPICS } from '@playline/contracts';
import {
  clickhouseSettings,
  deploymentSettings,
  kafkaSettings,
  listenerSettings,
  processSettings,
  redisSettings,
  registrySettings,
  settings,
} from '@playline/runtime';
import { z } from 'zod';

/** Calls without a rate limit key: contract, "Callers". */
const CALLS = 1500;
/** Tokens that a project may mint: contract, "Mint limits". */
const MINTS_PER_MINUTE = 200;
const MINTS_BURST = 2_000;
/** Metadata refreshes of a project per hour. */
const REFRESHES_PER_HOUR = 10_000;
/** An order of a hundred assets must fit. */
const MINTS_BURST_MIN = 100;
/** A request for 250 tokens must fit. */
const REFRESHES_MIN = 250;
/** CAIP-2: a namespace, and a reference in it. */
const CHAIN_ID = /^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$/;

/** A chain that is served. */
export interface ChainSettings {
  /** Name in paths: 1 to 64 lower-case letters, digits and hyphens. */
  readonly name: string;
  /** Id in answers: `namespace:reference`. */
  readonly id: string;
}

const chain = z.strictObject({
  name: z.string().refine(isChainName, 'expected lower-case letters, digits and hyphens'),
  id: z.string().regex(CHAIN_ID, 'expected namespace:reference'),
});

/** JSON: `[{"name":"demo-chain","id":"eip155:31337"}]` */
const chains = () =>
  settings
    .json()
    .pipe(z.array(chain).min(1))
    .refine((list) => new Set(list.map(({ name }) => name)).size === list.length, 'expected each name once')
    .transform((list): readonly ChainSettings[] => list);

const ENTRY = /^(\d{1,3})=((?:[0-9a-fA-F]{2})+)$/;

/** `id=hexadecimal secret`, comma-separated. The first signs; cursors signed by any of them are accepted. */
const cursorKeys = () =>
  z.string().transform((text, context): readonly [CursorKey, ...CursorKey[]] => {
    const keys = new Map<number, CursorKey>();
    for (const entry of text.split(',').map((part) => part.trim())) {
      const [, digits = '', secret = ''] = ENTRY.exec(entry) ?? [];
      const id = Number(digits);
      const isNew = id <= CURSOR_KEY.idMax && !keys.has(id) && secret.length >= 2 * CURSOR_KEY.secretBytesMin;
      if (isNew) keys.set(id, { id, secret: Buffer.from(secret, 'hex') });
      else
        context.addIssue(
          `expected id=secret, comma-separated, ids from 0 to ${CURSOR_KEY.idMax}, each once, secrets hexadecimal of at least ${CURSOR_KEY.secretBytesMin} bytes`,
        );
    }
    return [...keys.values()] as [CursorKey, ...CursorKey[]];
  });

/** Settings of the chain API, by the names of their environment variables. */
export const configSchema = z.object({
  ...processSettings,
  ...listenerSettings,
  HTTP_PORT: listenerSettings.HTTP_PORT.default(8082),
  ADMIN_PORT: processSettings.ADMIN_PORT.default(8083),
  /** Base of the `link` in error envelopes. */
  PUBLIC_URL: settings.baseUrl().optional(),
  HTTP_HEADER_PREFIX: deploymentSettings.HTTP_HEADER_PREFIX,
  ...kafkaSettings,
  ...registrySettings,
  ...redisSettings,
  ...clickhouseSettings,
  CHAINS: chains(),
  /** Nodes from which tokens are read that have not moved yet. Without nodes of a chain such tokens are 404. */
  CHAIN_NODES: chainNodes().default([]),
  CURSOR_KEYS: cursorKeys(),
  /** Partitions of `chain.activities.v1`. They determine the partition of a chain, whose watermark is its horizon. */
  ACTIVITY_PARTITIONS: settings.integer(1, 65_536).default(TOPICS.activities.partitions),
  /** A page takes tens of milliseconds; up to 10 s, so that a drain has room for a request. */
  READ_DEADLINE_MS: settings.integer(100, 10_000).default(5000),
  /** Calls of a client address without a rate limit key. */
  RATE_LIMIT_CALLS: settings.integer(1, PLAN_MAX.calls).default(CALLS),
  RATE_LIMIT_WINDOW_S: settings.integer(1, PLAN_MAX.windowS).default(PLAN_WINDOW_S),
  /** Distinct token ids that a project may request to mint: per minute on average, and at once. */
  MINTS_PER_MINUTE: settings.integer(1, 1_000_000).default(MINTS_PER_MINUTE),
  MINTS_BURST: settings.integer(MINTS_BURST_MIN, 10_000_000).default(MINTS_BURST),
  /** Collections, tokens and stacks whose metadata a project may refresh. */
  REFRESHES_PER_HOUR: settings.integer(REFRESHES_MIN, 100_000_000).default(REFRESHES_PER_HOUR),
  /** Age from which requests are listed. Before that, an earlier request may not be in the tables yet. */
  MINTS_LISTED_AFTER_MS: settings.integer(0, 600_000).default(5000),
  /** How long brokers may take to store a request. At least 100 ms, which a healthy write never takes. */
  PUBLISH_DEADLINE_MS: settings.integer(100, 20_000).default(2500),
  ACCESS_KEY_PREFIX: deploymentSettings.ACCESS_KEY_PREFIX,
  TRUSTED_PROXIES: settings.trustedProxies(),
});

export type Config = z.infer<typeof configSchema>;
