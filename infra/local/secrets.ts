import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { StackPaths } from './paths.ts';
import { readJsonFile, writePrivateFile } from './private-file.ts';

/** Secrets that the parts of a stack share. */
export interface Secrets {
  redisPassword: string;
  operatorPassword: string;
  writerPassword: string;
  readerPassword: string;
  portalPassword: string;
  /** Password of the analyst account that exists from the beginning. */
  analystPassword: string;
  /**
   * Passwords of the accounts that `npm run analysts` assigns, by name. A dropped account gets a new one at the next
   * start.
   */
  analystPasswords: Readonly<Record<string, string>>;
  /** Password of the account that ClickHouse's views run as. Only ClickHouse itself logs in with it. */
  viewsPassword: string;
  /** Passwords of the further logins of a stack with TLS. */
  kafkaPassword: string;
  registryPassword: string;
  /** Pepper of identity keys, 32 bytes, hexadecimal. Without it every stored key is meaningless. */
  identityPepper: string;
  /** Secret that signs cursors of the feed, also 32 bytes. Without it readers must start from the beginning. */
  cursorSecret: string;
  /** Private halves of the key pairs for sealed private keys, the newest first. Only services that sign get them. */
  signerKeys: string;
  /** Secret that signs the portal's forms and distinguishes its instances, also 32 bytes. */
  portalSecret: string;
}

const numbered = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => prefix + (index + 1));

/** Names of the analyst accounts in users.xml: without raw ids, and with them. */
export const ANALYST_POOL: readonly string[] = [...numbered('analyst_', 8), ...numbered('analyst_raw_', 4)];

/** Secrets have only letters and digits, because they go into addresses and configuration files. */
const SECRET_BYTES = 32;
const secret = () => randomBytes(SECRET_BYTES).toString('hex');

/** The stack's secrets. Created once, then read from `secrets.json` (mode 0600), which is stored beside the data. */
export function loadSecrets(places: StackPaths): Secrets {
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

/** SIGNER_PUBLIC_KEY: the public half of the signer's newest key pair, with which others seal private keys. */
export function signerPublicKeyOf({ signerKeys }: Pick<Secrets, 'signerKeys'>): string {
  const [newest] = JSON.parse(Buffer.from(signerKeys, 'base64url').toString('utf8'));
  const { kty, crv, x, y } = newest;
  return toSetting({ kty, crv, x, y });
}

/** A new key pair in the form of SIGNER_KEYS: a list of private JWKs, the newest first. */
export function makeSignerKeys(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return toSetting([privateKey.export({ format: 'jwk' })]);
}

/** base64url, because no shell and no settings file interprets any of its characters. */
const toSetting = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
