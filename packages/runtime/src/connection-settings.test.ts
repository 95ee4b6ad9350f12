import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createAuthority } from '@playline/infra/local';
import { testStackFolder } from '@playline/testkit';
import { afterAll, expect, it } from 'vitest';
import { z } from 'zod';
import { parseConfig } from './config.ts';
import {
  clickhouseSettings,
  kafkaSettings,
  redisSettings,
  registrySettings,
  toClickHouse,
  toKafka,
  toRedis,
} from './connection-settings.ts';

const schema = z.object({ ...kafkaSettings, ...redisSettings, ...clickhouseSettings, ...registrySettings });
const plain = {
  KAFKA_BROKERS: 'localhost:9092',
  REDIS_URL: 'redis://:word@localhost:6379',
  CLICKHOUSE_URL: 'http://localhost:8123',
  CLICKHOUSE_USER: 'writer',
  CLICKHOUSE_DATABASE: 'playline',
  SCHEMA_REGISTRY_URL: 'http://localhost:8081',
};
const folder = testStackFolder('connection-settings');
const authority = createAuthority(folder, 'authority of a test');
const server = authority.issue('server', ['localhost']);
const other = authority.issue('other', ['localhost']);
const ca = authority.certificate;

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The lines of the error; empty without an error. */
function mistakesOf(settings: Record<string, string>): string[] {
  try {
    parseConfig(schema, { ...plain, ...settings });
    return [];
  } catch (error) {
    return (error as Error).message
      .split('\n')
      .slice(1)
      .map((line) => line.trim());
  }
}

it('connections have no encryption and no login by default', () => {
  const config = parseConfig(schema, plain);
  expect(toKafka(config)).toEqual({ brokers: ['localhost:9092'], security: {} });
  expect(toRedis(config)).toEqual({ url: plain.REDIS_URL });
  expect(toClickHouse(config)).not.toHaveProperty('tls');
});

it('connection settings become client options, which contain the contents of the files', () => {
  const config = parseConfig(schema, {
    ...plain,
    KAFKA_TLS: 'true',
    KAFKA_TLS_CA_FILE: ca,
    KAFKA_TLS_CERT_FILE: server.certificate,
    KAFKA_TLS_KEY_FILE: server.key,
    KAFKA_TLS_SERVER_NAME: 'kafka.example',
    KAFKA_SASL_MECHANISM: 'SCRAM-SHA-512',
    KAFKA_SASL_USERNAME: 'someone',
    KAFKA_SASL_PASSWORD: 'word',
    REDIS_URL: 'rediss://someone:word@redis.example:6380',
    REDIS_TLS_CA_FILE: ca,
  });
  const text = readFileSync(ca, 'utf8');
  const [cert, key] = [readFileSync(server.certificate, 'utf8'), readFileSync(server.key, 'utf8')];
  expect(toKafka(config).security).toEqual({
    tls: { ca: text, cert, key, servername: 'kafka.example' },
    sasl: { mechanism: 'SCRAM-SHA-512', username: 'someone', password: 'word' },
  });
  expect(toRedis(config)).toMatchObject({ tls: { ca: text, servername: 'redis.example' } });
});

it('all errors in connection settings are reported together, by the name of the setting', () => {
  const mistakes = mistakesOf({
    KAFKA_TLS_CA_FILE: ca,
    KAFKA_SASL_MECHANISM: 'GSSAPI',
    KAFKA_SASL_PASSWORD: 'word',
    REDIS_URL: 'http://localhost',
    CLICKHOUSE_URL: 'https://localhost:8443',
    CLICKHOUSE_TLS_CA_FILE: join(folder, 'absent.pem'),
    CLICKHOUSE_TLS_KEY_FILE: server.key,
    SCHEMA_REGISTRY_USERNAME: 'someone',
    SCHEMA_REGISTRY_TLS_SERVER_NAME: '127.0.0.1',
  });
  expect(mistakes).toEqual(
    expect.arrayContaining([
      'KAFKA_TLS_CA_FILE: set, but KAFKA_TLS is not true',
      expect.stringMatching(/^KAFKA_SASL_MECHANISM: .*PLAIN/),
      'KAFKA_SASL_USERNAME: missing, while KAFKA_SASL_MECHANISM is set',
      'REDIS_URL: expected redis://… or rediss://…',
      'CLICKHOUSE_TLS_CA_FILE: the file cannot be read (ENOENT)',
      'CLICKHOUSE_TLS_CERT_FILE: missing, while CLICKHOUSE_TLS_KEY_FILE is set',
      'SCHEMA_REGISTRY_PASSWORD: missing, while SCHEMA_REGISTRY_USERNAME is set',
      'SCHEMA_REGISTRY_TLS_SERVER_NAME: set, but SCHEMA_REGISTRY_URL is not https://',
      expect.stringMatching(/^SCHEMA_REGISTRY_TLS_SERVER_NAME: expected a host name/),
    ]),
  );
  expect(mistakes.join()).not.toContain('word@');
});

const TLS = { KAFKA_TLS: 'true' };

it.each<[string, Record<string, string>, string]>([
  ['a password without a mechanism', { KAFKA_SASL_PASSWORD: 'w' }, 'KAFKA_SASL_MECHANISM: missing'],
  ['a key instead of an authority', { ...TLS, KAFKA_TLS_CA_FILE: server.key }, 'holds no certificate'],
  [
    'the key of another certificate',
    { ...TLS, KAFKA_TLS_CERT_FILE: server.certificate, KAFKA_TLS_KEY_FILE: other.key },
    'KAFKA_TLS_KEY_FILE: the key does not belong',
  ],
  ['a user in the address', { CLICKHOUSE_URL: 'http://writer:w@localhost' }, 'CLICKHOUSE_USER and CLICKHOUSE_PASSWORD'],
  ['a user in the address', { SCHEMA_REGISTRY_URL: 'https://a@localhost' }, 'SCHEMA_REGISTRY_USERNAME and'],
])('connection settings with %s are refused: %o', (_, settings, mistake) => {
  expect(mistakesOf(settings).join('\n')).toContain(mistake);
});

it.each(['redis://:50%off@localhost:6379', 'redis://some%one:word@localhost:6379'])(
  'a login that the Redis client cannot decode is refused: %s',
  (given) => {
    const mistake = 'REDIS_URL: a % in user or password must be written as %25';
    expect(mistakesOf({ REDIS_URL: given })).toEqual([mistake]);
    expect(mistakesOf({ REDIS_URL: given.replace('%', '%25') })).toEqual([]);
  },
);

it.each([
  ['a slash in the password', 'redis://:secret/word@localhost:6379'],
  ['an impossible port', 'redis://:secretword@localhost:99999'],
  ['no scheme', 'secretword'],
])('an address with %s is refused without quoting it', (_, given) => {
  for (const name of ['REDIS_URL', 'CLICKHOUSE_URL', 'SCHEMA_REGISTRY_URL'])
    expect(mistakesOf({ [name]: given })).toEqual([`${name}: Invalid URL`]);
});
