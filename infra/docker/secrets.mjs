// Writes .env with secrets for docker-compose.yml: all of them, or those that an .env of a release before lacks. Never
// writes over one: a lost pepper makes every stored identity key meaningless. Plain JavaScript and built-ins only, so
// that any Node from 18 runs it.
import { randomBytes } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const NAMES = [
  'REDIS_PASSWORD',
  'CLICKHOUSE_OPERATOR_PASSWORD',
  'CLICKHOUSE_WRITER_PASSWORD',
  'CLICKHOUSE_READER_PASSWORD',
  'CLICKHOUSE_ANALYST_PASSWORD',
  'CLICKHOUSE_VIEWS_PASSWORD',
  'IDENTITY_PEPPER',
  'CURSOR_SECRET',
  'PORTAL_SECRET',
];
/** The pepper and the secret of cursors need 32 bytes; hexadecimal stands in addresses without escaping. */
const SECRET_BYTES = 32;

const path = fileURLToPath(new URL('../../.env', import.meta.url));
const before = existsSync(path) ? readFileSync(path, 'utf8') : '';
const missing = NAMES.filter((name) => !new RegExp(`^${name}=`, 'm').test(before));
if (missing.length === 0) {
  console.log('.env has every secret already and stays as it is');
} else {
  const lines = missing.map((name) => `${name}=${randomBytes(SECRET_BYTES).toString('hex')}\n`);
  const gap = before === '' || before.endsWith('\n') ? '' : '\n';
  // 0600: the owner alone reads it.
  appendFileSync(path, gap + lines.join(''), { mode: 0o600 });
  console.log(`${missing.join(', ')} written to .env; keep it with your backups`);
}
