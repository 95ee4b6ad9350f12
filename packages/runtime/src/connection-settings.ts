/**
 * Settings of the connections to the stores, the same in every service: infra/README.md has their table. A service
 * takes the fragments of the stores it uses into its schema; `parseConfig` then also reports what does not fit together.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { z } from 'zod';
import { settings } from './config.ts';

export const SASL_MECHANISMS = ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'] as const;

/** The text of a PEM file; `check` throws when it holds something else. */
const pemFile = (what: string, check: (text: string) => unknown) =>
  z.string().transform((path, context): string => {
    try {
      const text = readFileSync(path, 'utf8');
      check(text);
      return text;
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).syscall === undefined ? null : (error as { code: string }).code;
      const message = code === null ? `the file holds no ${what} in PEM` : `the file cannot be read (${code})`;
      context.addIssue({ code: 'custom', message });
      return z.NEVER;
    }
  });
const certificateFile = () => pemFile('certificate', (text) => new X509Certificate(text)).optional();
const keyFile = () => pemFile('private key without a password', (text) => createPrivateKey(text)).optional();
const serverName = () =>
  z
    .string()
    .refine((name) => isIP(name) === 0, 'expected a host name: an address of digits cannot be asked for in TLS')
    .optional();
/** A rule of addresses. One that cannot be read has a rule of its own; a throw would show it, and its password. */
const rule = (holds: (address: URL) => boolean) => (text: string) => {
  const address = URL.parse(text);
  return address === null || holds(address);
};
const url = (...schemes: string[]) =>
  settings.url().refine(
    rule(({ protocol }) => schemes.includes(protocol.slice(0, -1))),
    `expected ${schemes.join('://… or ')}://…`,
  );

/** True when clients can read user and password of the address, which they decode. */
function isDecodable({ username, password }: URL): boolean {
  try {
    decodeURIComponent(username + password);
    return true;
  } catch {
    return false;
  }
}

/** An address over HTTP: `fetch` refuses one that holds a login. */
const httpUrl = (user: string, password: string) =>
  url('http', 'https').refine(
    rule((address) => address.username === '' && address.password === ''),
    `user and password belong into ${user} and ${password}`,
  );

/** Kafka: every client of a service, whichever library it is built on. */
export const kafkaSettings = {
  KAFKA_BROKERS: settings.brokers(),
  KAFKA_TLS: z
    .enum(['true', 'false'])
    .transform((text) => text === 'true')
    .default(false),
  KAFKA_TLS_CA_FILE: certificateFile(),
  KAFKA_TLS_CERT_FILE: certificateFile(),
  KAFKA_TLS_KEY_FILE: keyFile(),
  KAFKA_TLS_SERVER_NAME: serverName(),
  KAFKA_SASL_MECHANISM: z.enum(SASL_MECHANISMS).optional(),
  KAFKA_SASL_USERNAME: settings.text().optional(),
  KAFKA_SASL_PASSWORD: settings.text().optional(),
} as const;

/** Redis: `redis://[user]:password@host:port`, `rediss://…` with TLS. */
export const redisSettings = {
  REDIS_URL: url('redis', 'rediss').refine(rule(isDecodable), 'a % in user or password must be written as %25'),
  REDIS_TLS_CA_FILE: certificateFile(),
  REDIS_TLS_CERT_FILE: certificateFile(),
  REDIS_TLS_KEY_FILE: keyFile(),
  REDIS_TLS_SERVER_NAME: serverName(),
} as const;

/** ClickHouse over HTTP or HTTPS. */
export const clickhouseSettings = {
  CLICKHOUSE_URL: httpUrl('CLICKHOUSE_USER', 'CLICKHOUSE_PASSWORD'),
  CLICKHOUSE_USER: settings.text(),
  CLICKHOUSE_PASSWORD: z.string().default(''),
  CLICKHOUSE_DATABASE: settings.text(),
  CLICKHOUSE_TLS_CA_FILE: certificateFile(),
  CLICKHOUSE_TLS_CERT_FILE: certificateFile(),
  CLICKHOUSE_TLS_KEY_FILE: keyFile(),
  CLICKHOUSE_TLS_SERVER_NAME: serverName(),
} as const;

/** The schema registry over HTTP or HTTPS, with basic authentication where it has a user. */
export const registrySettings = {
  SCHEMA_REGISTRY_URL: httpUrl('SCHEMA_REGISTRY_USERNAME', 'SCHEMA_REGISTRY_PASSWORD'),
  SCHEMA_REGISTRY_USERNAME: settings.text().optional(),
  SCHEMA_REGISTRY_PASSWORD: settings.text().optional(),
  SCHEMA_REGISTRY_TLS_CA_FILE: certificateFile(),
  SCHEMA_REGISTRY_TLS_CERT_FILE: certificateFile(),
  SCHEMA_REGISTRY_TLS_KEY_FILE: keyFile(),
  SCHEMA_REGISTRY_TLS_SERVER_NAME: serverName(),
} as const;
