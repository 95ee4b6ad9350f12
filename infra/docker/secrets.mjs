// Writes .env with new secrets for docker-compose.yml. Never writes over one: a lost pepper makes every stored
// identity key meaningless. Plain JavaScript and built-ins only, so that any Node from 18 runs it.
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const NAMES = [
  'REDIS_PASSWORD',
  'CLICKHOUSE_OPERATOR_PASSWORD',
  'CLICKHOUSE_WRITER_PASSWORD',
  'CLICKHOUSE_ANALYST_PASSWORD',
  'IDENTITY_PEPPER',
  'CURSOR_SECRET',
];
/** The pepper and the secret of cursors need 32 bytes; hexadecimal stands in addresses without escaping. */
const SECRET_BYTES = 32;

const path = fileURLToPath(new URL('../../.env', import.meta.url));
const lines = NAMES.map((name) => `${name}=${randomBytes(SECRET_BYTES).toString('hex')}\n`);
try {
  // 0600: the owner alone reads it. wx: fails when the file is there.
  writeFileSync(path, lines.join(''), { mode: 0o600, flag: 'wx' });
  console.log('.env written; keep it with your backups');
} catch (error) {
  if (error.code !== 'EEXIST') throw error;
  console.error('.env is there already and stays as it is');
  process.exitCode = 1;
}
