import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { z } from 'zod';

/** All errors in a service's settings, one line each, without values, which may be secrets. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/**
 * Parses a service's settings from environment variables; '' counts as absent.
 * @throws ConfigError naming every variable that is missing or wrong
 */
export function parseConfig<S extends z.ZodObject>(
  schema: S,
  environment: Record<string, string | undefined>,
): z.infer<S> {
  const given = Object.fromEntries(
    Object.entries(environment).filter(([, value]) => value !== undefined && value !== ''),
  );
  const result = schema.safeParse(given);
  const mistakes = connectionMistakes(Object.keys(schema.shape), given);
  if (result.success && mistakes.length === 0) return result.data;
  const issues = result.error?.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`) ?? [];
  const lines = [...issues, ...mistakes].map((line) => `  ${line}`);
  throw new ConfigError(`These settings are missing or wrong:\n${lines.join('\n')}`);
}

/** More chained proxies than any deployment has. */
const TRUSTED_PROXIES_MAX = 10;

export const settings = {
  text: () => z.string().min(1),
  integer: (min: number, max: number) => z.coerce.number().int().min(min).max(max),
  port: () => z.coerce.number().int().min(0).max(65_535),
  url: () => z.url(),
  /** A URL to which paths are appended, without trailing slashes. */
  baseUrl: () => z.url().transform((url) => url.replace(/\/+$/, '')),
  /** Number of trusted proxies whose `X-Forwarded-For` entries are used; 0 uses the connection's address. */
  trustedProxies: () => z.coerce.number().int().min(0).max(TRUSTED_PROXIES_MAX).default(0),
  brokers: () =>
    z
      .string()
      .min(1)
      .transform((text) => text.split(',').map((broker) => broker.trim()))
      .refine((list) => list.every((broker) => /^[^\s:]+:\d+$/.test(broker)), 'expected host:port, comma-separated'),
  /** Hexadecimal secret of at least `bytesMin` bytes. */
  secretHex: (bytesMin: number) =>
    z
      .string()
      .regex(/^([0-9a-fA-F]{2})+$/, 'expected hexadecimal')
      .refine((text) => text.length >= 2 * bytesMin, `expected at least ${bytesMin} bytes`)
      .transform((text) => Buffer.from(text, 'hex')),
  /** Converts the string. @param parse throws an error whose message does not quote the string */
  parsed: <T>(parse: (text: string) => T) =>
    z.string().transform((text, context) => {
      try {
        return parse(text);
      } catch (fault) {
        context.addIssue({ code: 'custom', message: fault instanceof Error ? fault.message : 'is wrong' });
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

type Given = Readonly<Record<string, string | undefined>>;

/** Per store, the condition for its TLS settings. */
const TLS_IS_ON: Record<string, { holds: (given: Given) => boolean; missing: string }> = {
  KAFKA: { holds: (given) => given.KAFKA_TLS === 'true', missing: 'KAFKA_TLS is not true' },
  REDIS: { holds: (given) => isScheme(given.REDIS_URL, 'rediss'), missing: 'REDIS_URL is not rediss://' },
  CLICKHOUSE: { holds: (given) => isScheme(given.CLICKHOUSE_URL, 'https'), missing: 'CLICKHOUSE_URL is not https://' },
  SCHEMA_REGISTRY: {
    holds: (given) => isScheme(given.SCHEMA_REGISTRY_URL, 'https'),
    missing: 'SCHEMA_REGISTRY_URL is not https://',
  },
};

/** Also true for a missing address, which its own setting reports. */
function isScheme(address: string | undefined, scheme: string): boolean {
  return address?.toLowerCase().startsWith(`${scheme}://`) ?? true;
}

/** Finds conflicting connection settings: `NAME: problem`, without values. @param known settings of the service */
function connectionMistakes(known: readonly string[], given: Given): string[] {
  const isSet = (name: string) => known.includes(name) && given[name] !== undefined;
  const mistakes: string[] = [];
  const requireTogether = (name: string, ...others: string[]) => {
    if (!isSet(name)) return;
    for (const other of others) if (!isSet(other)) mistakes.push(`${other}: missing, while ${name} is set`);
  };
  for (const [prefix, { holds, missing }] of Object.entries(TLS_IS_ON)) {
    for (const part of ['CA_FILE', 'CERT_FILE', 'KEY_FILE', 'SERVER_NAME']) {
      const name = `${prefix}_TLS_${part}`;
      if (isSet(name) && !holds(given)) mistakes.push(`${name}: set, but ${missing}`);
    }
    const [certificate, key] = [`${prefix}_TLS_CERT_FILE`, `${prefix}_TLS_KEY_FILE`];
    requireTogether(certificate, key);
    requireTogether(key, certificate);
    if (isSet(certificate) && isSet(key) && !isPair(given[certificate] ?? '', given[key] ?? ''))
      mistakes.push(`${key}: the key does not belong to the certificate of ${certificate}`);
  }
  requireTogether('KAFKA_SASL_MECHANISM', 'KAFKA_SASL_USERNAME', 'KAFKA_SASL_PASSWORD');
  for (const name of ['KAFKA_SASL_USERNAME', 'KAFKA_SASL_PASSWORD'])
    if (isSet(name) && !isSet('KAFKA_SASL_MECHANISM'))
      mistakes.push(`KAFKA_SASL_MECHANISM: missing, while ${name} is set`);
  requireTogether('SCHEMA_REGISTRY_USERNAME', 'SCHEMA_REGISTRY_PASSWORD');
  requireTogether('SCHEMA_REGISTRY_PASSWORD', 'SCHEMA_REGISTRY_USERNAME');
  return [...new Set(mistakes)];
}

/** Also true for an unreadable file, which its own setting reports. */
function isPair(certificatePath: string, keyPath: string): boolean {
  try {
    const certificate = new X509Certificate(readFileSync(certificatePath));
    return certificate.checkPrivateKey(createPrivateKey(readFileSync(keyPath)));
  } catch {
    return true;
  }
}
