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
  /** Put before every topic name. */
  TOPIC_PREFIX: z.string().default(''),
  CONSUMER_GROUP: settings.text().default('minter'),
  SESSION_TIMEOUT_MS: settings.integer(1_000, 300_000).default(10_000),
  /** `[{"name":"demo-chain","id":"eip155:31337","urls":["http://127.0.0.1:8545"]}]`: the text that the chain indexer has. */
  CHAIN_NODES: chainNodes().refine(
    (chains) => new Set(chains.map(({ id }) => id)).size === chains.length,
    // A signer would have a lane by each name, and both would give out its nonces.
    'expected each id once: two names of one chain would use one nonce twice',
  ),
  /** Private halves that sealed keys are opened with, the newest first. Told to no other process. */
  SIGNER_KEYS: settings.text(),
});

export type Config = z.infer<typeof configSchema>;
