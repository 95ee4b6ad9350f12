import { ConfigError, parseConfig } from '@playline/runtime';
import { expect, it } from 'vitest';
import { configSchema } from './config.ts';

const required = {
  KAFKA_BROKERS: '127.0.0.1:9092',
  SCHEMA_REGISTRY_URL: 'http://127.0.0.1:8081',
  REDIS_URL: 'redis://:password@127.0.0.1:6379',
  IDENTITY_PEPPER: 'ab'.repeat(32),
};

it('all settings except store addresses and secrets have defaults', () => {
  expect(parseConfig(configSchema, required)).toMatchObject({
    HTTP_HEADER_PREFIX: 'x-service',
    ACCESS_KEY_PREFIX: 'svcapik',
    TOPIC_PREFIX: '',
    BYTES_IN_FLIGHT_MAX: 16_777_216,
    PUBLISH_DEADLINE_MS: 2500,
    EVENT_AGE_MAX_MS: 2_592_000_000,
    EVENT_AHEAD_MAX_MS: 86_400_000,
  });
});

it.each([
  ['HTTP_HEADER_PREFIX', 'X Service'],
  ['ACCESS_KEY_PREFIX', 'svc-api'],
  ['BYTES_IN_FLIGHT_MAX', '1024'],
  ['BYTES_IN_FLIGHT_MAX', String(2 * 1024 * 1024 - 1)],
  ['PUBLISH_DEADLINE_MS', '99'],
  ['PUBLISH_DEADLINE_MS', '20001'],
  ['ERASURE_CLOCK_SKEW_MS', '499'],
  ['IDENTITY_PEPPER', 'abcd'],
])('an invalid %s is refused with an error that names the setting', (name, value) => {
  const parse = () => parseConfig(configSchema, { ...required, [name]: value });
  expect(parse).toThrow(ConfigError);
  expect(parse).toThrow(name);
});

it('a trailing slash is removed from PUBLIC_URL', () => {
  const config = parseConfig(configSchema, { ...required, PUBLIC_URL: 'https://events.test/' });
  expect(config.PUBLIC_URL).toBe('https://events.test');
});
