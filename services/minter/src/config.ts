import { chainNodes } from '@playline/chain';
import {
  consumerSettings,
  GROUPS,
  kafkaSettings,
  processSettings,
  redisSettings,
  registrySettings,
  settings,
} from '@playline/runtime';
import { z } from 'zod';

/** Settings of the minter, by the names of their environment variables. */
export const configSchema = z.object({
  ...processSettings,
  ADMIN_PORT: processSettings.ADMIN_PORT.default(8086),
  ...kafkaSettings,
  ...registrySettings,
  ...redisSettings,
  ...consumerSettings,
  CONSUMER_GROUP: settings.text().default(GROUPS.minter),
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
