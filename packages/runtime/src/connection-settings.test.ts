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
const authority = createAuthority(folder, 'test authority');
const server = authority.issue('server', ['localhost']);
const other = authority.issue('other', ['localhost']);
const ca = authority.certificate;

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function errorsFor(settings: Record<string, string>): string[] {
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

it('connections use neither encryption nor a login by default', () => {
  const config = parseConfig(schema, plain);
  expect(toKafka(config)).toEqual({ brokers: ['localhost:9092'], security: {} });
  expect(toRedis(config)).toEqual({ url: plain.REDIS_URL });
  expect(toClickHouse(config)).not.toHaveProperty('tls');
});

it("connection settings become client options with the certificate files' contents", () => {
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

it('all errors in connection settings are reported together, each with the name of its setting', () => {
  const errors = errorsFor({
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
  expect(errors).toEqual(
    expect.arrayContaining([
      'KAFKA_TLS_CA_FILE: set, but KAFKA_TLS is not true',
      expect.stringMatching(/^KAFKA_SASL_MECHANISM: .*PLAIN/),
      'KAFKA_SASL_USERNAME: missing, but KAFKA_SASL_MECHANISM is set',
      'REDIS_URL: expected redis://… or rediss://…',
      'CLICKHOUSE_TLS_CA_FILE: the file cannot be read (ENOENT)',
      'CLICKHOUSE_TLS_CERT_FILE: missing, but CLICKHOUSE_TLS_KEY_FILE is set',
      'SCHEMA_REGISTRY_PASSWORD: missing, but SCHEMA_REGISTRY_USERNAME is set',
      'SCHEMA_REGISTRY_TLS_SERVER_NAME: set, but SCHEMA_REGISTRY_URL is not https://',
      expect.stringMatching(/^SCHEMA_REGISTRY_TLS_SERVER_NAME: expected a host name/),
    ]),
  );
  expect(errors.join()).not.toContain('word@');
});

const TLS = { KAFKA_TLS: 'true' };

it.each<[string, Record<string, string>, string]>([
  ['a password without a mechanism', { KAFKA_SASL_PASSWORD: 'w' }, 'KAFKA_SASL_MECHANISM: missing'],
  ['a key instead of a certificate', { ...TLS, KAFKA_TLS_CA_FILE: server.key }, 'contains no PEM certificate'],
  [
    'the key of another certificate',
    { ...TLS, KAFKA_TLS_CERT_FILE: server.certificate, KAFKA_TLS_KEY_FILE: other.key },
    'KAFKA_TLS_KEY_FILE: the key does not match',
  ],
  ['a user in the address', { CLICKHOUSE_URL: 'http://writer:w@localhost' }, 'CLICKHOUSE_USER and CLICKHOUSE_PASSWORD'],
  ['a user in the address', { SCHEMA_REGISTRY_URL: 'https://a@localhost' }, 'SCHEMA_REGISTRY_USERNAME and'],
])('connection settings with %s are rejected: %o', (_, settings, error) => {
  expect(errorsFor(settings).join('\n')).toContain(error);
});

it.each(['redis://:50%off@localhost:6379', 'redis://some%one:word@localhost:6379'])(
  'a login that the Redis client cannot decode is rejected: %s',
  (address) => {
    const error = 'REDIS_URL: write % in the user or password as %25';
    expect(errorsFor({ REDIS_URL: address })).toEqual([error]);
    expect(errorsFor({ REDIS_URL: address.replace('%', '%25') })).toEqual([]);
  },
);

it.each([
  ['a slash in the password', 'redis://:secret/word@localhost:6379'],
  ['an invalid port', 'redis://:secretword@localhost:99999'],
  ['no scheme', 'secretword'],
])('an address with %s is rejected, and the error does not contain the address', (_, address) => {
  for (const name of ['REDIS_URL', 'CLICKHOUSE_URL', 'SCHEMA_REGISTRY_URL'])
    expect(errorsFor({ [name]: address })).toEqual([`${name}: Invalid URL`]);
});

it('REDIS_URL lists the nodes of a cluster or the sentinels, and every address is checked', () => {
  const addresses = 'redis://:word@one:6379,two:6380,[::1]:6381';
  const cluster = { REDIS_URL: addresses, REDIS_CLUSTER: 'true', IDENTITY_CELLS: '16' };
  expect(toRedis(parseConfig(schema, { ...plain, ...cluster }))).toEqual({ url: addresses, cluster: true, cells: 16 });
  const sentinel = { REDIS_URL: addresses, REDIS_SENTINEL: 'main' };
  expect(toRedis(parseConfig(schema, { ...plain, ...sentinel }))).toEqual({ url: addresses, sentinel: 'main' });
  expect(errorsFor({ ...cluster, REDIS_URL: 'redis://:word@one:6379,two:port' })).toHaveLength(1);
  expect(errorsFor({ REDIS_URL: addresses })).toEqual([
    'REDIS_URL: several addresses require REDIS_CLUSTER or REDIS_SENTINEL',
  ]);
  expect(errorsFor({ ...cluster, IDENTITY_CELLS: '0' })).toEqual([
    'IDENTITY_CELLS: missing, but REDIS_CLUSTER is true',
  ]);
  expect(errorsFor({ ...cluster, REDIS_SENTINEL: 'main' })).toEqual(['REDIS_SENTINEL: set, but REDIS_CLUSTER is true']);
});

it('connections to a cluster with TLS expect each node under its own name, unless a name is set', () => {
  const addresses = { REDIS_URL: 'rediss://:word@one:6379,two:6379', REDIS_CLUSTER: 'true', IDENTITY_CELLS: '4' };
  expect(toRedis(parseConfig(schema, { ...plain, ...addresses })).tls).toEqual({});
  const named = { ...addresses, REDIS_TLS_SERVER_NAME: 'redis.example.com' };
  expect(toRedis(parseConfig(schema, { ...plain, ...named })).tls).toEqual({ servername: 'redis.example.com' });
});
