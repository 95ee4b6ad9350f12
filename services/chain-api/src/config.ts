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
  tracingSettings,
} from '@playline/runtime';
import { z } from 'zod';

/** See "Callers" in the contract. */
const CALLS = 1500;
/** See "Mint limits" in the contract. */
const MINTS_PER_MINUTE = 200;
const MINTS_BURST = 2_000;
const REFRESHES_PER_HOUR = 10_000;
/** Must allow a request with 100 assets. */
const MINTS_BURST_MIN = 100;
/** Must allow a request with 250 tokens. */
const REFRESHES_MIN = 250;
/** A CAIP-2 chain id. */
const CHAIN_ID = /^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$/;

export interface ChainSettings {
  readonly name: string;
  readonly id: string;
}

const chain = z.strictObject({
  name: z.string().refine(isChainName, 'expected lower-case letters, digits and hyphens'),
  id: z.string().regex(CHAIN_ID, 'expected namespace:reference'),
});

/** `[{"name":"demo-chain","id":"eip155:31337"}]` */
const chains = () =>
  settings
    .json()
    .pipe(z.array(chain).min(1))
    .refine((list) => new Set(list.map(({ name }) => name)).size === list.length, 'expected unique names')
    .transform((list): readonly ChainSettings[] => list);

const ENTRY = /^(\d{1,3})=((?:[0-9a-fA-F]{2})+)$/;

/** The first key signs cursors. All keys are accepted. */
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
          `expected a comma-separated list of id=secret with unique ids from 0 to ${CURSOR_KEY.idMax} and hexadecimal secrets of at least ${CURSOR_KEY.secretBytesMin} bytes`,
        );
    }
    return [...keys.values()] as [CursorKey, ...CursorKey[]];
  });

export const configSchema = z.object({
  ...processSettings,
  ...tracingSettings,
  ...listenerSettings,
  HTTP_PORT: listenerSettings.HTTP_PORT.default(8082),
  ADMIN_PORT: processSettings.ADMIN_PORT.default(8083),
  /** Base URL of the `link` in error responses. */
  PUBLIC_URL: settings.baseUrl().optional(),
  /** Gateway URL for the commands that pages show. */
  GATEWAY_URL: settings.baseUrl().optional(),
  HTTP_HEADER_PREFIX: deploymentSettings.HTTP_HEADER_PREFIX,
  ...kafkaSettings,
  ...registrySettings,
  ...redisSettings,
  ...clickhouseSettings,
  CHAINS: chains(),
  /** Chain nodes for looking up tokens without transfers. */
  CHAIN_NODES: chainNodes().default([]),
  /** Comma-separated list of `id=secret`, secrets in hexadecimal; the first key signs cursors, all are accepted. */
  CURSOR_KEYS: cursorKeys(),
  /** Partition count of `chain.activities.v1`, which maps each chain to the partition of its watermark. */
  ACTIVITY_PARTITIONS: settings.integer(1, 65_536).default(TOPICS.activities.partitions),
  /** Timeout for reading the store; at most 10 s, so that requests can finish during a drain. */
  READ_DEADLINE_MS: settings.integer(100, 10_000).default(5000),
  /** Calls per window for a client address without a rate limit key. */
  RATE_LIMIT_CALLS: settings.integer(1, PLAN_MAX.calls).default(CALLS),
  /** Window of the limit per client address. */
  RATE_LIMIT_WINDOW_S: settings.integer(1, PLAN_MAX.windowS).default(PLAN_WINDOW_S),
  /** Average number of distinct token ids that a project can request to mint per minute. */
  MINTS_PER_MINUTE: settings.integer(1, 1_000_000).default(MINTS_PER_MINUTE),
  /** Maximum number of token ids that a project can request to mint in a burst. */
  MINTS_BURST: settings.integer(MINTS_BURST_MIN, 10_000_000).default(MINTS_BURST),
  /** Number of collections, tokens and stacks whose metadata a project can refresh per hour. */
  REFRESHES_PER_HOUR: settings.integer(REFRESHES_MIN, 100_000_000).default(REFRESHES_PER_HOUR),
  /** Minimum age of listed mint requests. */
  MINTS_LISTED_AFTER_MS: settings.integer(0, 600_000).default(5000),
  /** Timeout for publishing a request to Kafka. */
  PUBLISH_DEADLINE_MS: settings.integer(100, 20_000).default(2500),
  ACCESS_KEY_PREFIX: deploymentSettings.ACCESS_KEY_PREFIX,
  TRUSTED_PROXIES: settings.trustedProxies(),
});

export type Config = z.infer<typeof configSchema>;
