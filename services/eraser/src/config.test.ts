import { parseConfig } from '@playline/runtime';
import { describe, expect, it } from 'vitest';
import { configSchema } from './config.ts';

const STORES = {
  KAFKA_BROKERS: 'localhost:9092',
  SCHEMA_REGISTRY_URL: 'http://localhost:8080',
  REDIS_URL: 'redis://localhost:6379',
  CLICKHOUSE_URL: 'http://localhost:8123',
  CLICKHOUSE_USER: 'writer',
  CLICKHOUSE_PASSWORD: 'secret',
  CLICKHOUSE_DATABASE: 'playline',
};

describe('the settings of the eraser', () => {
  it('have times of day in UTC, by default half past two and three', () => {
    expect(parseConfig(configSchema, STORES)).toMatchObject({ SCRUB_AT: 150, REMOVAL_AT: 180, BATCH_WINDOW_MS: 2_000 });
    expect(parseConfig(configSchema, { ...STORES, SCRUB_AT: '00:00', REMOVAL_AT: '23:59' })).toMatchObject({
      SCRUB_AT: 0,
      REMOVAL_AT: 1_439,
    });
  });

  it.each(['24:00', '3:00', '03:60', 'noon'])('refuse %j as a time of day, and say what is expected', (text) => {
    expect(() => parseConfig(configSchema, { ...STORES, REMOVAL_AT: text })).toThrow('a time of day in UTC, as 03:30');
  });
});
