import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { z } from 'zod';

/** Contains all errors in a service's settings, one per line. Values are omitted, because they may be secrets. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/**
 * Parses a service's settings from environment variables. Empty variables count as missing.
 * @throws ConfigError that lists every missing or invalid variable
 */
export function parseConfig<S extends z.ZodObject>(
  schema: S,
  environment: Record<string, string | undefined>,
): z.infer<S> {
  const environmentValues = Object.fromEntries(
    Object.entries(environment).filter(([, value]) => value !== undefined && value !== ''),
  );
  const result = schema.safeParse(environmentValues);
  const errors = findConnectionErrors(Object.keys(schema.shape), environmentValues);
  if (result.success && errors.length === 0) return result.data;
  const issues = result.error?.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`) ?? [];
  const lines = [...issues, ...errors].map((line) => `  ${line}`);
  throw new ConfigError(`These settings are missing or invalid:\n${lines.join('\n')}`);
}

/** More than any deployment has. */
const TRUSTED_PROXIES_MAX = 10;

export const settings = {
  text: () => z.string().min(1),
  integer: (min: number, max: number) => z.coerce.number().int().min(min).max(max),
  flag: () =>
    z
      .enum(['true', 'false'])
      .transform((text) => text === 'true')
      .default(false),
  ratio: () => z.coerce.number().min(0).max(1),
  port: () => z.coerce.number().int().min(0).max(65_535),
  url: () => z.url(),
  /** A URL without trailing slashes, to which paths are appended. */
  baseUrl: () => z.url().transform((url) => url.replace(/\/+$/, '')),
  /** How many trusted proxies add an entry to `X-Forwarded-For`; 0 uses the connection's address. */
  trustedProxies: () => z.coerce.number().int().min(0).max(TRUSTED_PROXIES_MAX).default(0),
  brokers: () =>
    z
      .string()
      .min(1)
      .transform((text) => text.split(',').map((broker) => broker.trim()))
      .refine((list) => list.every((broker) => /^[^\s:]+:\d+$/.test(broker)), 'expected host:port, comma-separated'),
  /** A hexadecimal secret of at least `bytesMin` bytes. */
  secretHex: (bytesMin: number) =>
    z
      .string()
      .regex(/^([0-9a-fA-F]{2})+$/, 'expected hexadecimal')
      .refine((text) => text.length >= 2 * bytesMin, `expected at least ${bytesMin} bytes`)
      .transform((text) => Buffer.from(text, 'hex')),
  /** Converts the value. @param parse must throw errors that do not quote the value */
  parsed: <T>(parse: (text: string) => T) =>
    z.string().transform((text, context) => {
      try {
        return parse(text);
      } catch (fault) {
        context.addIssue({ code: 'custom', message: fault instanceof Error ? fault.message : 'is invalid' });
        return z.NEVER;
      }
    }),
  json: () =>
    z.string().transform((text, context): unknown => {
      try {
        return JSON.parse(text);
      } catch {
        context.addIssue({ code: 'custom', message: 'expected JSON' });
        return z.NEVER;
      }
    }),
  logLevel: () => z.enum(['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace']),
} as const;

type EnvironmentValues = Readonly<Record<string, string | undefined>>;

/** For each store, the condition under which its TLS settings apply. */
const TLS_CONDITIONS: Record<string, { isMet: (values: EnvironmentValues) => boolean; missing: string }> = {
  KAFKA: { isMet: (values) => values.KAFKA_TLS === 'true', missing: 'KAFKA_TLS is not true' },
  REDIS: { isMet: (values) => isScheme(values.REDIS_URL, 'rediss'), missing: 'REDIS_URL is not rediss://' },
  CLICKHOUSE: {
    isMet: (values) => isScheme(values.CLICKHOUSE_URL, 'https'),
    missing: 'CLICKHOUSE_URL is not https://',
  },
  SCHEMA_REGISTRY: {
    isMet: (values) => isScheme(values.SCHEMA_REGISTRY_URL, 'https'),
    missing: 'SCHEMA_REGISTRY_URL is not https://',
  },
};

/** Also returns true if the address is missing, because that error is reported for the address setting. */
function isScheme(address: string | undefined, scheme: string): boolean {
  return address?.toLowerCase().startsWith(`${scheme}://`) ?? true;
}

/** Finds conflicting connection settings, as `NAME: problem` without values. @param names the service's settings */
function findConnectionErrors(names: readonly string[], values: EnvironmentValues): string[] {
  const isSet = (name: string) => names.includes(name) && values[name] !== undefined;
  const errors: string[] = [];
  const requireTogether = (name: string, ...required: string[]) => {
    if (!isSet(name)) return;
    for (const other of required) if (!isSet(other)) errors.push(`${other}: missing, but ${name} is set`);
  };
  for (const [prefix, { isMet, missing }] of Object.entries(TLS_CONDITIONS)) {
    for (const suffix of ['CA_FILE', 'CERT_FILE', 'KEY_FILE', 'SERVER_NAME']) {
      const name = `${prefix}_TLS_${suffix}`;
      if (isSet(name) && !isMet(values)) errors.push(`${name}: set, but ${missing}`);
    }
    const [certificate, key] = [`${prefix}_TLS_CERT_FILE`, `${prefix}_TLS_KEY_FILE`];
    requireTogether(certificate, key);
    requireTogether(key, certificate);
    if (isSet(certificate) && isSet(key) && !isPair(values[certificate] ?? '', values[key] ?? ''))
      errors.push(`${key}: the key does not match the certificate in ${certificate}`);
  }
  requireTogether('KAFKA_SASL_MECHANISM', 'KAFKA_SASL_USERNAME', 'KAFKA_SASL_PASSWORD');
  for (const name of ['KAFKA_SASL_USERNAME', 'KAFKA_SASL_PASSWORD'])
    if (isSet(name) && !isSet('KAFKA_SASL_MECHANISM')) errors.push(`KAFKA_SASL_MECHANISM: missing, but ${name} is set`);
  requireTogether('CLICKHOUSE_CLUSTER', 'CLICKHOUSE_SHARD_URLS');
  requireTogether('CLICKHOUSE_SHARD_URLS', 'CLICKHOUSE_CLUSTER');
  const [home] = values.CLICKHOUSE_SHARD_URLS?.split(',') ?? [];
  if (isSet('CLICKHOUSE_SHARD_URLS') && home !== values.CLICKHOUSE_URL)
    errors.push('CLICKHOUSE_SHARD_URLS: the first address must be CLICKHOUSE_URL');
  requireTogether('SCHEMA_REGISTRY_USERNAME', 'SCHEMA_REGISTRY_PASSWORD');
  requireTogether('SCHEMA_REGISTRY_PASSWORD', 'SCHEMA_REGISTRY_USERNAME');
  return [...new Set([...errors, ...findRedisErrors(names, values)])];
}

function findRedisErrors(names: readonly string[], values: EnvironmentValues): string[] {
  const { REDIS_URL: url = '', REDIS_CLUSTER: cluster, REDIS_SENTINEL: sentinel, IDENTITY_CELLS: cells } = values;
  if (!names.includes('REDIS_URL')) return [];
  const isCluster = cluster === 'true';
  const errors: string[] = [];
  if (isCluster && sentinel !== undefined) errors.push('REDIS_SENTINEL: set, but REDIS_CLUSTER is true');
  if (isCluster && Number(cells ?? 0) === 0) errors.push('IDENTITY_CELLS: missing, but REDIS_CLUSTER is true');
  if (!isCluster && sentinel === undefined && /,[^/]*$/.test(url.replace(/^.*@/, '')))
    errors.push('REDIS_URL: several addresses require REDIS_CLUSTER or REDIS_SENTINEL');
  return errors;
}

/** Also returns true if a file is unreadable, because that error is reported for the file's own setting. */
function isPair(certificatePath: string, keyPath: string): boolean {
  try {
    const certificate = new X509Certificate(readFileSync(certificatePath));
    return certificate.checkPrivateKey(createPrivateKey(readFileSync(keyPath)));
  } catch {
    return true;
  }
}
