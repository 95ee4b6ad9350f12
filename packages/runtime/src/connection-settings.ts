import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { createStoreFetch, type StoreFetch, type TlsOptions } from '@playline/stores';
import { z } from 'zod';
import { settings } from './config.ts';

/** Connection settings, which are the same in every service (table: infra/README.md). */

export const SASL_MECHANISMS = ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'] as const;

/** Reads a PEM file. @param check throws if the content is invalid */
const pemFile = (content: string, check: (pem: string) => unknown) =>
  z.string().transform((path, context): string => {
    try {
      const pem = readFileSync(path, 'utf8');
      check(pem);
      return pem;
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).syscall === undefined ? null : (error as { code: string }).code;
      const message = code === null ? `the file contains no PEM ${content}` : `the file cannot be read (${code})`;
      context.addIssue({ code: 'custom', message });
      return z.NEVER;
    }
  });
const certificateFile = () => pemFile('certificate', (pem) => new X509Certificate(pem)).optional();
const keyFile = () => pemFile('private key without a passphrase', (pem) => createPrivateKey(pem)).optional();
const serverName = () =>
  z
    .string()
    .refine((name) => isIP(name) === 0, 'expected a host name, because TLS server names cannot be IP addresses')
    .optional();
/**
 * Creates a validation rule for addresses. The rule never throws, because URL errors contain the address and password.
 */
const rule = (isValid: (address: URL) => boolean) => (text: string) => {
  const address = URL.parse(text);
  return address === null || isValid(address);
};
const url = (...schemes: string[]) =>
  settings.url().refine(
    rule(({ protocol }) => schemes.includes(protocol.slice(0, -1))),
    `expected ${schemes.join('://… or ')}://…`,
  );

/** Returns true if clients can decode the user and password in the address. */
function isDecodable({ username, password }: URL): boolean {
  try {
    decodeURIComponent(username + password);
    return true;
  } catch {
    return false;
  }
}

/** An HTTP address without a login, because `fetch` rejects addresses that contain one. */
const httpUrl = (user: string, password: string) =>
  url('http', 'https').refine(
    rule((address) => address.username === '' && address.password === ''),
    `set the user and password in ${user} and ${password}`,
  );

export const kafkaSettings = {
  /** Brokers to connect to first, as `host:port,host:port`. */
  KAFKA_BROKERS: settings.brokers(),
  /** Uses TLS for all connections to brokers. */
  KAFKA_TLS: settings.flag(),
  KAFKA_TLS_CA_FILE: certificateFile(),
  KAFKA_TLS_CERT_FILE: certificateFile(),
  KAFKA_TLS_KEY_FILE: keyFile(),
  KAFKA_TLS_SERVER_NAME: serverName(),
  /** SASL mechanism. Requires a user and a password. */
  KAFKA_SASL_MECHANISM: z.enum(SASL_MECHANISMS).optional(),
  /** SASL user. */
  KAFKA_SASL_USERNAME: settings.text().optional(),
  /** SASL password. */
  KAFKA_SASL_PASSWORD: settings.text().optional(),
} as const;

/** The first of several addresses: `redis://:password@host:port,host:port`. The rest are validated by the same rule. */
const toAddresses = (text: string) => {
  const [, start = '', hosts = ''] = /^([a-z]+:\/\/(?:[^@/]*@)?)([^/?]*,[^/?]*)/i.exec(text) ?? [];
  return hosts === '' ? [text] : hosts.split(',').map((host) => start + host);
};

const redisUrl = url('redis', 'rediss').refine(rule(isDecodable), 'write % in the user or password as %25');

/** More than the nodes of any cluster. Every cell is checked twice a second. */
const IDENTITY_CELLS_MAX = 1_024;

export const redisSettings = {
  /**
   * `redis://[user]:password@host:port`, or `rediss://…` for TLS. Several nodes of a cluster, or several sentinels, are
   * separated by commas: `redis://:password@host:port,host:port`.
   */
  REDIS_URL: z.string().transform((text, context) => {
    const results = toAddresses(text).map((address) => redisUrl.safeParse(address));
    const failed = results.find(({ success }) => !success);
    if (failed === undefined) return text;
    context.addIssue({ code: 'custom', message: failed.error!.issues[0]!.message });
    return z.NEVER;
  }),
  /** The addresses are nodes of a Redis Cluster. Requires IDENTITY_CELLS. */
  REDIS_CLUSTER: settings.flag(),
  /** The addresses are sentinels, which know the primary by this name. */
  REDIS_SENTINEL: settings.text().optional(),
  /**
   * Number of hash tags over which a Redis Cluster distributes identities: the number of partitions of the link topic,
   * or a multiple. Cannot be changed without a rebuild of Redis. 0 for a single server.
   */
  IDENTITY_CELLS: settings.integer(0, IDENTITY_CELLS_MAX).default(0),
  REDIS_TLS_CA_FILE: certificateFile(),
  REDIS_TLS_CERT_FILE: certificateFile(),
  REDIS_TLS_KEY_FILE: keyFile(),
  REDIS_TLS_SERVER_NAME: serverName(),
} as const;

export const clickhouseSettings = {
  /** `http://host:8123` or `https://host:8443`, without a user or password. */
  CLICKHOUSE_URL: httpUrl('CLICKHOUSE_USER', 'CLICKHOUSE_PASSWORD'),
  /** The service's ClickHouse account. */
  CLICKHOUSE_USER: settings.text(),
  /** Password of the ClickHouse account. */
  CLICKHOUSE_PASSWORD: z.string().default(''),
  /** The deployment's database. */
  CLICKHOUSE_DATABASE: settings.text(),
  CLICKHOUSE_TLS_CA_FILE: certificateFile(),
  CLICKHOUSE_TLS_CERT_FILE: certificateFile(),
  CLICKHOUSE_TLS_KEY_FILE: keyFile(),
  CLICKHOUSE_TLS_SERVER_NAME: serverName(),
} as const;

/** For services that read or write the shards themselves. */
export const clickhouseClusterSettings = {
  /** Name of the shards in the configuration of ClickHouse; unset for a single server. */
  CLICKHOUSE_CLUSTER: z
    .string()
    .regex(/^[a-z][a-z0-9_]{0,63}$/)
    .optional(),
  /** Addresses of all nodes in the order of their shards, separated by commas; the first is CLICKHOUSE_URL. */
  CLICKHOUSE_SHARD_URLS: z
    .string()
    .transform((text) => text.split(','))
    .pipe(z.array(httpUrl('CLICKHOUSE_USER', 'CLICKHOUSE_PASSWORD')))
    .optional(),
} as const;

/** For the command that creates the tables. */
export const clickhouseTableSettings = {
  ...clickhouseSettings,
  ...clickhouseClusterSettings,
  /** 1 for tables that several replicas have (infra/clickhouse/README.md#replicas). */
  CLICKHOUSE_REPLICATED: z.enum(['0', '1']).default('0'),
} as const;

export const registrySettings = {
  /** Address of a Confluent-compatible schema registry, without a user or password. */
  SCHEMA_REGISTRY_URL: httpUrl('SCHEMA_REGISTRY_USERNAME', 'SCHEMA_REGISTRY_PASSWORD'),
  /** Username for basic authentication. */
  SCHEMA_REGISTRY_USERNAME: settings.text().optional(),
  /** Password for basic authentication. */
  SCHEMA_REGISTRY_PASSWORD: settings.text().optional(),
  SCHEMA_REGISTRY_TLS_CA_FILE: certificateFile(),
  SCHEMA_REGISTRY_TLS_CERT_FILE: certificateFile(),
  SCHEMA_REGISTRY_TLS_KEY_FILE: keyFile(),
  SCHEMA_REGISTRY_TLS_SERVER_NAME: serverName(),
} as const;

export interface SaslOptions {
  readonly mechanism: (typeof SASL_MECHANISMS)[number];
  readonly username: string;
  readonly password: string;
}

/** Without TLS and SASL options, connections are unencrypted and use no login. */
export interface KafkaSecurity {
  readonly tls?: TlsOptions;
  readonly sasl?: SaslOptions;
}

type TlsSettings<Prefix extends string> = {
  readonly [name in `${Prefix}_TLS_${'CA_FILE' | 'CERT_FILE' | 'KEY_FILE' | 'SERVER_NAME'}`]?: string | undefined;
};

type Parsed<S extends z.ZodRawShape> = Readonly<z.infer<z.ZodObject<S>>>;
export type KafkaConfig = Parsed<typeof kafkaSettings>;
export type RedisConfig = Parsed<typeof redisSettings>;
export type ClickHouseConfig = Parsed<typeof clickhouseSettings> & Partial<Parsed<typeof clickhouseClusterSettings>>;
export type RegistryConfig = Parsed<typeof registrySettings>;

function toTls<Prefix extends string>(config: TlsSettings<Prefix>, prefix: Prefix): TlsOptions {
  const settingsByName = config as Readonly<Record<string, string | undefined>>;
  const options = { ca: 'CA_FILE', cert: 'CERT_FILE', key: 'KEY_FILE', servername: 'SERVER_NAME' };
  const values = Object.entries(options).map(([name, suffix]) => [name, settingsByName[`${prefix}_TLS_${suffix}`]]);
  return Object.fromEntries(values.filter(([, value]) => value !== undefined)) as TlsOptions;
}

/** @param log receives a warning if the password is sent over an unencrypted connection */
export function toKafka(config: KafkaConfig, log?: { warn(message: string): void }) {
  const { KAFKA_SASL_MECHANISM: mechanism, KAFKA_SASL_USERNAME: username, KAFKA_SASL_PASSWORD: password } = config;
  const sasl = mechanism && username && password ? { mechanism, username, password } : null;
  if (mechanism === 'PLAIN' && !config.KAFKA_TLS)
    log?.warn('SASL password is sent unencrypted: KAFKA_SASL_MECHANISM is PLAIN and KAFKA_TLS is not true');
  const security: KafkaSecurity = {
    ...(config.KAFKA_TLS ? { tls: toTls(config, 'KAFKA') } : {}),
    ...(sasl === null ? {} : { sasl }),
  };
  return { brokers: config.KAFKA_BROKERS, security };
}

export interface RedisAddress {
  readonly url: string;
  readonly cluster?: boolean;
  readonly sentinel?: string;
  readonly cells?: number;
  readonly tls?: TlsOptions;
}

/** The URL contains the user and password. */
export function toRedis(config: RedisConfig): RedisAddress {
  const { REDIS_URL: url, REDIS_CLUSTER: cluster, REDIS_SENTINEL: sentinel, IDENTITY_CELLS: cells } = config;
  const address = {
    url,
    ...(cluster && { cluster }),
    ...(sentinel !== undefined && { sentinel }),
    ...(cells > 0 && { cells }),
  };
  const [first = '', ...others] = toAddresses(url);
  const { protocol, hostname } = new URL(first);
  if (protocol !== 'rediss:') return address;
  // Without a server name, a server with several certificates may send the wrong one.
  const isNamed = others.length === 0 && !cluster && isIP(hostname.replace(/^\[|\]$/g, '')) === 0;
  return { ...address, tls: { ...(isNamed && { servername: hostname }), ...toTls(config, 'REDIS') } };
}

/** Includes a `fetch` for statements that bypass the ClickHouse client. */
export function toClickHouse(config: ClickHouseConfig) {
  const { CLICKHOUSE_URL: url, CLICKHOUSE_USER: user, CLICKHOUSE_PASSWORD: password } = config;
  const tls = isHttps(url) ? toTls(config, 'CLICKHOUSE') : undefined;
  const { CLICKHOUSE_CLUSTER: name, CLICKHOUSE_SHARD_URLS: urls } = config;
  const cluster = name !== undefined && urls !== undefined ? { cluster: { name, urls } } : {};
  const account = { url, user, password, database: config.CLICKHOUSE_DATABASE, ...cluster };
  return { ...account, ...(tls === undefined ? {} : { tls }), fetch: createStoreFetch({ tls }) };
}

/** Includes a `fetch` that uses the schema registry's certificate authority and login. */
export function toRegistry(config: RegistryConfig): { url: string; fetch: StoreFetch } {
  const { SCHEMA_REGISTRY_URL: url, SCHEMA_REGISTRY_USERNAME: user, SCHEMA_REGISTRY_PASSWORD: password } = config;
  const login = user === undefined || password === undefined ? undefined : { user, password };
  return { url, fetch: createStoreFetch({ tls: isHttps(url) ? toTls(config, 'SCHEMA_REGISTRY') : undefined, login }) };
}

const isHttps = (url: string) => new URL(url).protocol === 'https:';
