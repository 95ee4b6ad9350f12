// Writes .env with secrets for docker-compose.yml: all of them, or those that an older .env lacks. It never replaces
// one, because every stored identity key depends on the pepper. Plain JavaScript and built-ins only, so that any Node
// from 18 runs it.
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const NAMES = [
  'REDIS_PASSWORD',
  'CLICKHOUSE_OPERATOR_PASSWORD',
  'CLICKHOUSE_WRITER_PASSWORD',
  'CLICKHOUSE_READER_PASSWORD',
  'CLICKHOUSE_PORTAL_PASSWORD',
  'CLICKHOUSE_ANALYST_PASSWORD',
  'CLICKHOUSE_VIEWS_PASSWORD',
  'IDENTITY_PEPPER',
  'CURSOR_SECRET',
  'PORTAL_SECRET',
];
/** The pepper and the cursor secret need 32 bytes. Hexadecimal needs no escaping in addresses. */
const SECRET_BYTES = 32;
/** The signer's key pair. Others than the minter get only the public half, which seals keys. */
const [SIGNER_KEYS, SIGNER_PUBLIC_KEY] = ['SIGNER_KEYS', 'SIGNER_PUBLIC_KEY'];
/** base64url has no characters that are special in a settings file. */
const toSetting = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');

const path = fileURLToPath(new URL('../../.env', import.meta.url));
const before = existsSync(path) ? readFileSync(path, 'utf8') : '';
const missing = [...NAMES, SIGNER_KEYS, SIGNER_PUBLIC_KEY].filter((name) => settingOf(name) === undefined);

function settingOf(name) {
  return new RegExp(`^${name}=(.*)$`, 'm').exec(before)?.[1];
}

function makeSignerKeys() {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return toSetting([privateKey.export({ format: 'jwk' })]);
}

/** The public half of the newest key. */
function toPublicKey(signerKeys) {
  const [{ kty, crv, x, y }] = JSON.parse(Buffer.from(signerKeys, 'base64url').toString('utf8'));
  return toSetting({ kty, crv, x, y });
}

function makeValues() {
  const signerKeys = settingOf(SIGNER_KEYS) ?? makeSignerKeys();
  const signer = { [SIGNER_KEYS]: signerKeys, [SIGNER_PUBLIC_KEY]: toPublicKey(signerKeys) };
  return missing.map((name) => [name, signer[name] ?? randomBytes(SECRET_BYTES).toString('hex')]);
}

if (missing.length === 0) {
  console.log('.env has every secret already and stays as it is');
} else {
  const lines = makeValues().map(([name, value]) => `${name}=${value}\n`);
  const gap = before === '' || before.endsWith('\n') ? '' : '\n';
  // 0600: only the owner may read it.
  appendFileSync(path, gap + lines.join(''), { mode: 0o600 });
  console.log(`${missing.join(', ')} written to .env; keep it with your backups`);
}
