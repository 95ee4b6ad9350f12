import { chainNodes } from '@playline/chain';
import { kafkaSettings, processSettings, registrySettings } from '@playline/runtime';
import { z } from 'zod';

/** Settings of the chain indexer, by the names of their environment variables. */
export const configSchema = z.object({
  ...processSettings,
  ...kafkaSettings,
  ...registrySettings,
  /** `[{"name":"demo-chain","id":"eip155:31337","urls":["http://127.0.0.1:8545"]}]`; `[]`: it indexes nothing. */
  CHAIN_NODES: chainNodes(),
});

export type Config = z.infer<typeof configSchema>;
