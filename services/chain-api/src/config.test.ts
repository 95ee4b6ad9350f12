import { ConfigError, parseConfig } from '@playline/runtime';
import { expect, it } from 'vitest';
import { configSchema } from './config.ts';

const SECRET = 'ab'.repeat(32);
const required = {
  KAFKA_BROKERS: '127.0.0.1:9092',
  SCHEMA_REGISTRY_URL: 'http://127.0.0.1:8081',
  REDIS_URL: 'redis://127.0.0.1:6379',
  CLICKHOUSE_URL: 'http://127.0.0.1:8123',
  CLICKHOUSE_USER: 'reader',
  CLICKHOUSE_DATABASE: 'playline',
  CHAINS: '[{"name":"demo-chain","id":"eip155:31337"}]',
  CURSOR_KEYS: `1=${SECRET}`,
};
const parse = (environment: Record<string, string> = {}) => parseConfig(configSchema, { ...required, ...environment });

it('the default limit per client address is 1,500 calls in 5 minutes', () => {
  expect(parse()).toMatchObject({ RATE_LIMIT_CALLS: 1500, RATE_LIMIT_WINDOW_S: 300, TRUSTED_PROXIES: 0 });
});

it('cursor keys keep their order, because the first key signs cursors', () => {
  const { CURSOR_KEYS } = parse({ CURSOR_KEYS: `2=${SECRET}, 1=${'cd'.repeat(40)}` });
  expect(CURSOR_KEYS.map(({ id }) => id)).toEqual([2, 1]);
  expect(CURSOR_KEYS[1].secret).toEqual(Buffer.from('cd'.repeat(40), 'hex'));
});

it.each([
  '1',
  `1=${'ab'.repeat(31)}`,
  `=${SECRET}`,
  `1=${SECRET},1=${SECRET}`,
  `1=${SECRET},`,
  '1=xy',
  `256=${SECRET}`,
  `a=${SECRET}`,
])('the cursor keys %j are rejected, and the error does not contain the secret', (text) => {
  const error = configErrorOf({ CURSOR_KEYS: text });
  expect(error).toContain('CURSOR_KEYS');
  expect(error).not.toContain('abab');
});

it.each([
  'demo-chain',
  '[]',
  '{}',
  '[{"name":"Demo","id":"eip155:1"}]',
  '[{"name":"","id":"eip155:1"}]',
  '[{"name":"demo","id":"1"}]',
  '[{"name":"demo"}]',
  '[{"name":"demo","id":"eip155:1","more":1}]',
  '[{"name":"demo","id":"eip155:1"},{"name":"demo","id":"eip155:2"}]',
])('the chains %j are rejected', (text) => expect(configErrorOf({ CHAINS: text })).toContain('CHAINS'));

function configErrorOf(environment: Record<string, string>): string {
  try {
    parse(environment);
  } catch (fault) {
    expect(fault).toBeInstanceOf(ConfigError);
    return String(fault);
  }
  throw new Error('the settings were accepted');
}
