// Writes the secrets for docker-compose.yml to .env, or adds the secrets that an older .env lacks. It never replaces a
// secret, because every stored identity key depends on the pepper. Plain JavaScript with built-in modules only, so that
// it runs on Node 18 and later.
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const NAMES = [
  'REDIS_PASSWORD',
  'CLICKHOUSE_OPERATOR_PASSWORD',
  'CLICKHOUSE_WRITER_PASSWORD',
  'CLICKHOUSE_READER_PASSWORD',
  'CLICKHOUSE_PORTAL_PASSWORD',
  'CLICKHOUSE_ACCOUNTS_PASSWORD',
  'CLICKHOUSE_ANALYST_PASSWORD',
  'CLICKHOUSE_VIEWS_PASSWORD',
  'IDENTITY_PEPPER',
  'CURSOR_SECRET',
  'PORTAL_SECRET',
  'GRAFANA_ADMIN_PASSWORD',
];
/** The pepper and the cursor secret require 32 bytes. Hexadecimal strings need no escaping in URLs. */
const SECRET_BYTES = 32;
/** The signer's key pair. All services except the minter receive only the public key, which encrypts private keys. */
const [SIGNER_KEYS, SIGNER_PUBLIC_KEY] = ['SIGNER_KEYS', 'SIGNER_PUBLIC_KEY'];
/** Encodes a value as base64url, which has no special characters in a settings file. */
const toSetting = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');

const path = fileURLToPath(new URL('../../.env', import.meta.url));
const existing = existsSync(path) ? readFileSync(path, 'utf8') : '';
const missing = [...NAMES, SIGNER_KEYS, SIGNER_PUBLIC_KEY].filter((name) => settingOf(name) === undefined);

function settingOf(name) {
  return new RegExp(`^${name}=(.*)$`, 'm').exec(existing)?.[1];
}

function createSignerKeys() {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return toSetting([privateKey.export({ format: 'jwk' })]);
}

/** Returns the public key of the newest key pair. */
function toPublicKey(signerKeys) {
  const [{ kty, crv, x, y }] = JSON.parse(Buffer.from(signerKeys, 'base64url').toString('utf8'));
  return toSetting({ kty, crv, x, y });
}

function createValues() {
  const signerKeys = settingOf(SIGNER_KEYS) ?? createSignerKeys();
  const signer = { [SIGNER_KEYS]: signerKeys, [SIGNER_PUBLIC_KEY]: toPublicKey(signerKeys) };
  return missing.map((name) => [name, signer[name] ?? randomBytes(SECRET_BYTES).toString('hex')]);
}

if (missing.length === 0) {
  console.log('.env already contains all secrets');
} else {
  const lines = createValues().map(([name, value]) => `${name}=${value}\n`);
  const gap = existing === '' || existing.endsWith('\n') ? '' : '\n';
  // Mode 0600, so that only the owner can read the file.
  appendFileSync(path, gap + lines.join(''), { mode: 0o600 });
  console.log(`${missing.join(', ')} written to .env. Include .env in your backups`);
}
