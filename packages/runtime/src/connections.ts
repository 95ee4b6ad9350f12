/** Turns settings into the options of the stores' clients. */
import { isIP } from 'node:net';
import { createStoreFetch, type StoreFetch, type TlsOptions } from '@playline/stores';
import type { SASL_MECHANISMS } from './connection-settings.ts';

export interface SaslOptions {
  readonly mechanism: (typeof SASL_MECHANISMS)[number];
  readonly username: string;
  readonly password: string;
}

/** How clients of Kafka connect; without `tls` in the clear, without `sasl` without a login. */
export interface KafkaSecurity {
  readonly tls?: TlsOptions;
  readonly sasl?: SaslOptions;
}

type TlsSettings<Prefix extends string> = {
  readonly [name in `${Prefix}_TLS_${'CA_FILE' | 'CERT_FILE' | 'KEY_FILE' | 'SERVER_NAME'}`]?: string | undefined;
};

export interface KafkaConfig extends TlsSettings<'KAFKA'> {
  readonly KAFKA_BROKERS: string[];
  readonly KAFKA_TLS: boolean;
  readonly KAFKA_SASL_MECHANISM?: SaslOptions['mechanism'] | undefined;
  readonly KAFKA_SASL_USERNAME?: string | undefined;
  readonly KAFKA_SASL_PASSWORD?: string | undefined;
}

export interface RedisConfig extends TlsSettings<'REDIS'> {
  readonly REDIS_URL: string;
}

export interface ClickHouseConfig extends TlsSettings<'CLICKHOUSE'> {
  readonly CLICKHOUSE_URL: string;
  readonly CLICKHOUSE_USER: string;
  readonly CLICKHOUSE_PASSWORD: string;
  readonly CLICKHOUSE_DATABASE: string;
}

export interface RegistryConfig extends TlsSettings<'SCHEMA_REGISTRY'> {
  readonly SCHEMA_REGISTRY_URL: string;
  readonly SCHEMA_REGISTRY_USERNAME?: string | undefined;
  readonly SCHEMA_REGISTRY_PASSWORD?: string | undefined;
}

function toTls<Prefix extends string>(config: TlsSettings<Prefix>, prefix: Prefix): TlsOptions {
  const given = config as Readonly<Record<string, string | undefined>>;
  const options = { ca: 'CA_FILE', cert: 'CERT_FILE', key: 'KEY_FILE', servername: 'SERVER_NAME' };
  const values = Object.entries(options).map(([name, part]) => [name, given[`${prefix}_TLS_${part}`]]);
  return Object.fromEntries(values.filter(([, value]) => value !== undefined)) as TlsOptions;
}

/**
 * Brokers and security of every Kafka client of a service.
 * @param log gets a warning when the settings send a password over an unencrypted connection
 */
export function toKafka(
  config: KafkaConfig,
  log?: { warn(message: string): void },
): { brokers: string[]; security: KafkaSecurity } {
  const { KAFKA_SASL_MECHANISM: mechanism, KAFKA_SASL_USERNAME: username, KAFKA_SASL_PASSWORD: password } = config;
  const sasl = mechanism && username && password ? { mechanism, username, password } : null;
  if (mechanism === 'PLAIN' && !config.KAFKA_TLS)
    log?.warn('KAFKA_SASL_MECHANISM is PLAIN and KAFKA_TLS is not true: the network can read the password');
  const security = { ...(config.KAFKA_TLS ? { tls: toTls(config, 'KAFKA') } : {}), ...(sasl === null ? {} : { sasl }) };
  return { brokers: config.KAFKA_BROKERS, security };
}

/** Address and TLS of every Redis client of a service; user and password stand in the address. */
export function toRedis(config: RedisConfig): { url: string; tls?: TlsOptions } {
  const url = config.REDIS_URL;
  const { protocol, hostname } = new URL(url);
  if (protocol !== 'rediss:') return { url };
  // The client itself names no host, and a server with several certificates then shows the wrong one.
  const named = isIP(hostname.replace(/^\[|\]$/g, '')) === 0 ? { servername: hostname } : {};
  return { url, tls: { ...named, ...toTls(config, 'REDIS') } };
}

/** Account, TLS and, for questions without the vendor's client, a `fetch` of ClickHouse. */
export function toClickHouse(config: ClickHouseConfig) {
  const url = config.CLICKHOUSE_URL;
  const tls = isHttps(url) ? toTls(config, 'CLICKHOUSE') : undefined;
  return {
    url,
    user: config.CLICKHOUSE_USER,
    password: config.CLICKHOUSE_PASSWORD,
    database: config.CLICKHOUSE_DATABASE,
    ...(tls === undefined ? {} : { tls }),
    fetch: createStoreFetch({ tls }),
  };
}

/** Address of the schema registry, and a `fetch` that trusts its authority and logs in. */
export function toRegistry(config: RegistryConfig): { url: string; fetch: StoreFetch } {
  const { SCHEMA_REGISTRY_URL: url, SCHEMA_REGISTRY_USERNAME: user, SCHEMA_REGISTRY_PASSWORD: password } = config;
  const login = user === undefined || password === undefined ? undefined : { user, password };
  return { url, fetch: createStoreFetch({ tls: isHttps(url) ? toTls(config, 'SCHEMA_REGISTRY') : undefined, login }) };
}

function isHttps(url: string): boolean {
  return new URL(url).protocol === 'https:';
}
