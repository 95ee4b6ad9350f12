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

describe('eraser settings', () => {
  it('times of day default to 02:30 and 03:00 UTC', () => {
    expect(parseConfig(configSchema, STORES)).toMatchObject({ SCRUB_AT: 150, REMOVAL_AT: 180, BATCH_WINDOW_MS: 2_000 });
    expect(parseConfig(configSchema, { ...STORES, SCRUB_AT: '00:00', REMOVAL_AT: '23:59' })).toMatchObject({
      SCRUB_AT: 0,
      REMOVAL_AT: 1_439,
    });
  });

  it.each(['24:00', '3:00', '03:60', 'noon'])('%j is rejected as a time of day, with the expected format', (text) => {
    expect(() => parseConfig(configSchema, { ...STORES, REMOVAL_AT: text })).toThrow(
      'a time of day in UTC, such as 03:30',
    );
  });
});
