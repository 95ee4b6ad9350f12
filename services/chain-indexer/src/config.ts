import { chainNodes } from '@playline/chain';
import { kafkaSettings, processSettings, registrySettings, tracingSettings } from '@playline/runtime';
import { z } from 'zod';

export const configSchema = z.object({
  ...processSettings,
  ...tracingSettings,
  ...kafkaSettings,
  ...registrySettings,
  /** The chains to index and their nodes. `[]` for none. */
  CHAIN_NODES: chainNodes(),
});

export type Config = z.infer<typeof configSchema>;
