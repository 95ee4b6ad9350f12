import { chainNodes } from '@playline/chain';
import { kafkaSettings, redisSettings, registrySettings, settings } from '@playline/runtime';
import { z } from 'zod';

/** Settings of the minter, by the names of their environment variables. */
export const configSchema = z.object({
  LOG_LEVEL: settings.logLevel().default('info'),
  ADMIN_HOST: settings.text().default('127.0.0.1'),
  ADMIN_PORT: settings.port().default(8086),
  ...kafkaSettings,
  ...registrySettings,
  ...redisSettings,
  /** Prefix of every topic name. */
  TOPIC_PREFIX: z.string().default(''),
  CONSUMER_GROUP: settings.text().default('minter'),
  SESSION_TIMEOUT_MS: settings.integer(1_000, 300_000).default(10_000),
  /** `[{"name":"demo-chain","id":"eip155:31337","urls":["http://127.0.0.1:8545"]}]`: as for the chain indexer. */
  CHAIN_NODES: chainNodes().refine(
    (chains) => new Set(chains.map(({ id }) => id)).size === chains.length,
    // A signer would have a lane under each name, and both would use the same nonces.
    'expected each id once: two names of one chain would use one nonce twice',
  ),
  /** Private keys that decrypt the sealed keys, the newest first. No other process has them. */
  SIGNER_KEYS: settings.text(),
});

export type Config = z.infer<typeof configSchema>;
