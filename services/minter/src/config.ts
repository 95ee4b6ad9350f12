import { chainNodes } from '@playline/chain';
import {
  consumerSettings,
  GROUPS,
  kafkaSettings,
  processSettings,
  redisSettings,
  registrySettings,
  settings,
  tracingSettings,
} from '@playline/runtime';
import { z } from 'zod';

export const configSchema = z.object({
  ...processSettings,
  ...tracingSettings,
  ADMIN_PORT: processSettings.ADMIN_PORT.default(8086),
  ...kafkaSettings,
  ...registrySettings,
  ...redisSettings,
  ...consumerSettings,
  CONSUMER_GROUP: settings.text().default(GROUPS.minter),
  /** The chains and their nodes, in the same format as for the chain indexer. */
  CHAIN_NODES: chainNodes().refine(
    (chains) => new Set(chains.map(({ id }) => id)).size === chains.length,
    // A signer would have two lanes with the same nonces.
    'expected unique ids: two names for one chain would use the same nonces',
  ),
  /** The private keys that unseal signable keys, newest first. Only the minter has them. */
  SIGNER_KEYS: settings.text(),
});

export type Config = z.infer<typeof configSchema>;
