import { randomBytes } from 'node:crypto';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Places } from './places.ts';
import { readJsonFile, writePrivateFile } from './private-file.ts';
import { makeSignerKeys } from './signer-keys.ts';

export { signerPublicKeyOf } from './signer-keys.ts';

/** Secrets that the parts of a stack share. */
export interface Secrets {
  redisPassword: string;
  operatorPassword: string;
  writerPassword: string;
  readerPassword: string;
  portalPassword: string;
  /** Of the account for analysts that is there from the beginning. */
  analystPassword: string;
  /** Of those that are given out (`npm run analysts`), by name. One that was dropped gets another at the next start. */
  analystPasswords: Readonly<Record<string, string>>;
  /** Of the account that the views of ClickHouse run as; only ClickHouse itself logs in with it. */
  viewsPassword: string;
  /** Of the logins that a stack with TLS has besides. */
  kafkaPassword: string;
  registryPassword: string;
  /** Hexadecimal, 32 bytes: the pepper of identity keys. A lost pepper makes every stored key meaningless. */
  identityPepper: string;
  /** As long: what cursors of the feed are signed with. Without it readers begin again. */
  cursorSecret: string;
  /** Private halves of the key pairs that private keys of addresses are sealed to, the newest first; no service is told. */
  signerKeys: string;
  /** As long: what the portal signs forms with, and tells its instances apart by. */
  portalSecret: string;
}

const numbered = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => prefix + (index + 1));

/** Accounts for analysts that users.xml has for giving out: without raw ids, and with them. */
export const ANALYST_POOL: readonly string[] = [...numbered('analyst_', 8), ...numbered('analyst_raw_', 4)];

/** Passwords go into addresses and configuration files, so they are letters and digits alone. */
const SECRET_BYTES = 32;
const secret = () => randomBytes(SECRET_BYTES).toString('hex');

/** The stack's secrets: made once, then read back; kept in `secrets.json` (mode 0600) beside the data they unlock. */
export function loadSecrets(places: Places): Secrets {
  const path = join(places.state, 'secrets.json');
  const kept = readJsonFile(path) as Partial<Secrets> | null;
  const dropped = join(places.state, 'dropped-accounts');
  const ofAnalyst = (account: string) =>
    existsSync(join(dropped, account)) ? secret() : (kept?.analystPasswords?.[account] ?? secret());
  const secrets: Secrets = {
    redisPassword: kept?.redisPassword ?? secret(),
    operatorPassword: kept?.operatorPassword ?? secret(),
    writerPassword: kept?.writerPassword ?? secret(),
    readerPassword: kept?.readerPassword ?? secret(),
    portalPassword: kept?.portalPassword ?? secret(),
    analystPassword: kept?.analystPassword ?? secret(),
    analystPasswords: Object.fromEntries(ANALYST_POOL.map((account) => [account, ofAnalyst(account)])),
    viewsPassword: kept?.viewsPassword ?? secret(),
    kafkaPassword: kept?.kafkaPassword ?? secret(),
    registryPassword: kept?.registryPassword ?? secret(),
    identityPepper: kept?.identityPepper ?? secret(),
    cursorSecret: kept?.cursorSecret ?? secret(),
    signerKeys: kept?.signerKeys ?? makeSignerKeys(),
    portalSecret: kept?.portalSecret ?? secret(),
  };
  if (JSON.stringify(kept) !== JSON.stringify(secrets)) writePrivateFile(path, `${JSON.stringify(secrets, null, 2)}\n`);
  rmSync(dropped, { recursive: true, force: true });
  return secrets;
}
