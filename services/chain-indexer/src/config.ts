import { chainNodes } from '@playline/chain';
import { kafkaSettings, parseConfig, registrySettings, settings } from '@playline/runtime';
import { z } from 'zod';

/** Settings of the chain indexer, by the names of their environment variables. */
export const configSchema = z.object({
  LOG_LEVEL: settings.logLevel().default('info'),
  ...kafkaSettings,
  ...registrySettings,
  /** Prefix of every topic name and of transactional ids. */
  TOPIC_PREFIX: z.string().default(''),
  ADMIN_HOST: settings.text().default('127.0.0.1'),
  ADMIN_PORT: settings.port(),
  /** `[{"name":"demo-chain","id":"eip155:31337","urls":["http://127.0.0.1:8545"]}]`; `[]`: it indexes nothing. */
  CHAIN_NODES: chainNodes(),
});

export type Config = z.infer<typeof configSchema>;

/** Settings of the chain indexer. @throws ConfigError naming every setting that is missing or wrong */
export function readConfig(environment: Record<string, string | undefined>): Config {
  return parseConfig(configSchema, environment);
}
