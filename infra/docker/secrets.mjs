// Writes the secrets for docker-compose.yml to .env, or adds the secrets that an older .env lacks. It never replaces a
// secret, because every stored identity key depends on the pepper. With `--cluster`, it also writes the settings of a
// cluster. Plain JavaScript with built-in modules only, so that it runs on Node 18 and later.
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
/** The settings of the profile `cluster`: three brokers, six Redis and two ClickHouse nodes, and two of each service. */
const CLUSTER = {
  COMPOSE_PROFILES: 'cluster',
  SERVICE_PROCESSES: '2',
  KAFKA_BROKERS: 'kafka:9092,kafka-2:9092,kafka-3:9092',
  KAFKA_VOTERS: '1@kafka:9093,2@kafka-2:9093,3@kafka-3:9093',
  KAFKA_REPLICAS: '3',
  KAFKA_REPLICAS_IN_SYNC: '2',
  TOPIC_REPLICATION_FACTOR: '3',
  TOPIC_MIN_INSYNC_REPLICAS: '2',
  REDIS_NODES: 'redis:6379,redis-2:6379,redis-3:6379,redis-4:6379,redis-5:6379,redis-6:6379',
  REDIS_CLUSTER: 'true',
  // The partitions of the link topic.
  IDENTITY_CELLS: '6',
  CLICKHOUSE_CLUSTER: 'playline_1',
  CLICKHOUSE_SHARD_URLS: 'http://clickhouse:8123,http://clickhouse-2:8123',
};
/** The pepper and the cursor secret require 32 bytes. Hexadecimal strings need no escaping in URLs. */
const SECRET_BYTES = 32;
/** The signer's key pair. All services except the minter receive only the public key, which encrypts private keys. */
const [SIGNER_KEYS, SIGNER_PUBLIC_KEY] = ['SIGNER_KEYS', 'SIGNER_PUBLIC_KEY'];
/** Encodes a value as base64url, which has no special characters in a settings file. */
const toSetting = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');

const path = fileURLToPath(new URL('../../.env', import.meta.url));
const existing = existsSync(path) ? readFileSync(path, 'utf8') : '';
const isCluster = process.argv.includes('--cluster');
const clusterNames = isCluster ? [...Object.keys(CLUSTER), 'CLICKHOUSE_CLUSTER_SECRET'] : [];
const names = [...NAMES, SIGNER_KEYS, SIGNER_PUBLIC_KEY, ...clusterNames];
const missing = names.filter((name) => settingOf(name) === undefined);

// New controllers without data could outvote the controller of an existing deployment, whose topics would be lost. Redis and
// ClickHouse would not find its data.
if (missing.some((name) => clusterNames.includes(name)) && !missing.includes('IDENTITY_PEPPER')) {
  console.error(
    '.env belongs to a deployment with fewer nodes, which cannot become a cluster. Create a new deployment',
  );
  process.exit(1);
}

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
  return missing.map((name) => [name, CLUSTER[name] ?? signer[name] ?? randomBytes(SECRET_BYTES).toString('hex')]);
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
