import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';

type Given = Readonly<Record<string, string | undefined>>;

/** For each store, what must be set so that its TLS settings have an effect. */
const TLS_IS_ON: Record<string, { holds: (given: Given) => boolean; missing: string }> = {
  KAFKA: { holds: (given) => given.KAFKA_TLS === 'true', missing: 'KAFKA_TLS is not true' },
  REDIS: { holds: (given) => isScheme(given.REDIS_URL, 'rediss'), missing: 'REDIS_URL is not rediss://' },
  CLICKHOUSE: { holds: (given) => isScheme(given.CLICKHOUSE_URL, 'https'), missing: 'CLICKHOUSE_URL is not https://' },
  SCHEMA_REGISTRY: {
    holds: (given) => isScheme(given.SCHEMA_REGISTRY_URL, 'https'),
    missing: 'SCHEMA_REGISTRY_URL is not https://',
  },
};

/** True also for an address that is not set: its own setting says whether that is a mistake. */
function isScheme(address: string | undefined, scheme: string): boolean {
  return address?.toLowerCase().startsWith(`${scheme}://`) ?? true;
}

/**
 * Finds settings of connections that contradict each other, one line each: `NAME: what is wrong`, never with a value.
 * @param known names of the settings that the service has
 */
export function connectionMistakes(known: readonly string[], given: Given): string[] {
  const isSet = (name: string) => known.includes(name) && given[name] !== undefined;
  const mistakes: string[] = [];
  const together = (name: string, ...others: string[]) => {
    if (!isSet(name)) return;
    for (const other of others) if (!isSet(other)) mistakes.push(`${other}: missing, while ${name} is set`);
  };
  for (const [prefix, { holds, missing }] of Object.entries(TLS_IS_ON)) {
    for (const part of ['CA_FILE', 'CERT_FILE', 'KEY_FILE', 'SERVER_NAME']) {
      const name = `${prefix}_TLS_${part}`;
      if (isSet(name) && !holds(given)) mistakes.push(`${name}: set, but ${missing}`);
    }
    const [certificate, key] = [`${prefix}_TLS_CERT_FILE`, `${prefix}_TLS_KEY_FILE`];
    together(certificate, key);
    together(key, certificate);
    if (isSet(certificate) && isSet(key) && !isPair(given[certificate] ?? '', given[key] ?? ''))
      mistakes.push(`${key}: the key does not belong to the certificate of ${certificate}`);
  }
  together('KAFKA_SASL_MECHANISM', 'KAFKA_SASL_USERNAME', 'KAFKA_SASL_PASSWORD');
  for (const name of ['KAFKA_SASL_USERNAME', 'KAFKA_SASL_PASSWORD'])
    if (isSet(name) && !isSet('KAFKA_SASL_MECHANISM'))
      mistakes.push(`KAFKA_SASL_MECHANISM: missing, while ${name} is set`);
  together('SCHEMA_REGISTRY_USERNAME', 'SCHEMA_REGISTRY_PASSWORD');
  together('SCHEMA_REGISTRY_PASSWORD', 'SCHEMA_REGISTRY_USERNAME');
  return [...new Set(mistakes)];
}

/** True also when a file cannot be read: its own setting reports that. */
function isPair(certificatePath: string, keyPath: string): boolean {
  try {
    const certificate = new X509Certificate(readFileSync(certificatePath));
    return certificate.checkPrivateKey(createPrivateKey(readFileSync(keyPath)));
  } catch {
    return true;
  }
}
