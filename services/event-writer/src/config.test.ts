import { BLOCKS_PER_S_MAX, ConfigError, parseConfig } from '@playline/runtime';
import { expect, it } from 'vitest';
import { configSchema } from './config.ts';

const required = {
  KAFKA_BROKERS: '127.0.0.1:9092',
  SCHEMA_REGISTRY_URL: 'http://127.0.0.1:8081',
  CLICKHOUSE_URL: 'http://127.0.0.1:8123',
  CLICKHOUSE_USER: 'writer',
  CLICKHOUSE_DATABASE: 'playline',
  ADMIN_PORT: '0',
};
/** Upper limits of the design: rows and bytes per second and table, and partitions per topic. */
const DESIGN_LIMITS = { rowsPerS: 160_000, bytesPerS: 160 * 1024 * 1024, partitions: 40 };

const minima = {
  BLOCK_ROWS_MAX: 1_000,
  BLOCK_BYTES_MAX: 1024 * 1024,
  BLOCK_AGE_MAX_MS: 250,
  SESSION_TIMEOUT_MS: 1_000,
};

it.each(Object.entries(minima))('the minimum of %s is accepted, and a lower value is refused', (name, min) => {
  expect(parseConfig(configSchema, { ...required, [name]: String(min) })).toMatchObject({ [name]: min });
  const parse = () => parseConfig(configSchema, { ...required, [name]: String(min - 1) });
  expect(parse).toThrow(ConfigError);
  expect(parse).toThrow(name);
});

it('the minima limit the number of blocks to the deduplication window of a table', () => {
  expect(DESIGN_LIMITS.rowsPerS / minima.BLOCK_ROWS_MAX).toBeLessThanOrEqual(BLOCKS_PER_S_MAX);
  expect(DESIGN_LIMITS.bytesPerS / minima.BLOCK_BYTES_MAX).toBeLessThanOrEqual(BLOCKS_PER_S_MAX);
  expect((DESIGN_LIMITS.partitions * 1_000) / minima.BLOCK_AGE_MAX_MS).toBeLessThanOrEqual(BLOCKS_PER_S_MAX);
});
