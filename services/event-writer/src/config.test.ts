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
/** Upper limits of the design: rows per second into one table, and partitions of a topic. */
const PLANNED = { rowsPerS: 160_000, bytesPerS: 160 * 1024 * 1024, partitions: 40 };

const least = { BLOCK_ROWS_MAX: 1_000, BLOCK_BYTES_MAX: 1024 * 1024, BLOCK_AGE_MAX_MS: 250, SESSION_TIMEOUT_MS: 1_000 };

it.each(Object.entries(least))('the minimum of %s is accepted, and one less is refused by its name', (name, min) => {
  expect(parseConfig(configSchema, { ...required, [name]: String(min) })).toMatchObject({ [name]: min });
  const parse = () => parseConfig(configSchema, { ...required, [name]: String(min - 1) });
  expect(parse).toThrow(ConfigError);
  expect(parse).toThrow(name);
});

it('the minima keep the blocks of a deployment within the number whose tokens a table stores', () => {
  expect(PLANNED.rowsPerS / least.BLOCK_ROWS_MAX).toBeLessThanOrEqual(BLOCKS_PER_S_MAX);
  expect(PLANNED.bytesPerS / least.BLOCK_BYTES_MAX).toBeLessThanOrEqual(BLOCKS_PER_S_MAX);
  expect((PLANNED.partitions * 1_000) / least.BLOCK_AGE_MAX_MS).toBeLessThanOrEqual(BLOCKS_PER_S_MAX);
});
