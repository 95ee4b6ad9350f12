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
  it('SCRUB_AT defaults to 02:30 UTC and REMOVAL_AT to 03:00 UTC', () => {
    expect(parseConfig(configSchema, STORES)).toMatchObject({ SCRUB_AT: 150, REMOVAL_AT: 180, BATCH_WINDOW_MS: 2_000 });
    expect(parseConfig(configSchema, { ...STORES, SCRUB_AT: '00:00', REMOVAL_AT: '23:59' })).toMatchObject({
      SCRUB_AT: 0,
      REMOVAL_AT: 1_439,
    });
  });

  it.each(['24:00', '3:00', '03:60', 'noon'])('the config rejects %j as a time of day', (text) => {
    expect(() => parseConfig(configSchema, { ...STORES, REMOVAL_AT: text })).toThrow(
      'a time of day in UTC, such as 03:30',
    );
  });
});
