/** Lists the secrets of a deployment with fingerprints, from which no value can be computed. */
import { randomBytes, scryptSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Manifest } from './manifest.ts';

export type SavedSecret = Manifest['secrets'][number];

const PEPPER = 'IDENTITY_PEPPER';
/** Settings of services that contain secrets, as listed in infra/SETTINGS.md. */
const SETTINGS = [
  ...[PEPPER, 'CURSOR_KEYS', 'SIGNER_KEYS', 'PORTAL_SECRET', 'OPENID_CLIENT_SECRET', 'ANALYST_ACCOUNTS', 'REDIS_URL'],
  'SMTP_URL',
  ...['CLICKHOUSE_PASSWORD', 'CLICKHOUSE_ACCOUNTS_PASSWORD', 'KAFKA_SASL_PASSWORD', 'SCHEMA_REGISTRY_PASSWORD'],
] as const;

/** Reads the secrets that this command can see: those of the local stack, or of the environment. */
export function readSecrets(
  folder: string,
  environment: Readonly<Record<string, string | undefined>>,
): ReadonlyMap<string, string> {
  const isDeployment = environment.KAFKA_BROKERS !== undefined || environment.CLICKHOUSE_URL !== undefined;
  const found: Record<string, string | undefined> = isDeployment
    ? Object.fromEntries(SETTINGS.map((name) => [name, environment[name]]))
    : readStackSecrets(folder);
  const entries = Object.entries(found).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  return new Map(entries);
}

function readStackSecrets(folder: string): Record<string, string> {
  try {
    const { identityPepper, ...rest } = JSON.parse(readFileSync(join(folder, '.playline', 'secrets.json'), 'utf8'));
    return { ...rest, [PEPPER]: identityPepper };
  } catch {
    return {};
  }
}

const fingerprintOf = (value: string, salt: string) => scryptSync(value, Buffer.from(salt, 'hex'), 16).toString('hex');

export function listSecrets(secrets: ReadonlyMap<string, string>): SavedSecret[] {
  return [...secrets].map(([name, value]) => {
    const salt = randomBytes(16).toString('hex');
    return { name, salt, fingerprint: fingerprintOf(value, salt) };
  });
}

/**
 * Compares the secrets with those of a backup.
 * @returns a sentence for each secret that is missing or has changed
 * @throws Error for another pepper, with which the identity keys in the tables belong to no one
 */
export function compareSecrets(secrets: ReadonlyMap<string, string>, saved: readonly SavedSecret[]): string[] {
  return saved.flatMap(({ name, salt, fingerprint }) => {
    const value = secrets.get(name);
    if (value === undefined) return [`secret ${name} of the backup is not visible to this command`];
    if (fingerprintOf(value, salt) === fingerprint) return [];
    if (name === PEPPER)
      throw new Error(
        `${PEPPER} is not the one of the backup: restore the secret first, because identity keys depend on it`,
      );
    return [`secret ${name} is not the one of the backup`];
  });
}
