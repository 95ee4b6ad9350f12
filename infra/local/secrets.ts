// Secrets of a stack, in `secrets.json` beside its data.
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { StackPaths } from './paths.ts';
import { readJsonFile, writePrivateFile } from './private-file.ts';

export interface Secrets {
  redisPassword: string;
  operatorPassword: string;
  writerPassword: string;
  readerPassword: string;
  portalPassword: string;
  analystPassword: string;
  /** By account. `npm run analysts` assigns them; a dropped account gets a new one at the next start. */
  analystPasswords: Readonly<Record<string, string>>;
  /** Of the account that views run as. Only ClickHouse itself logs in with it. */
  viewsPassword: string;
  /** Of a stack with TLS, as the next one. */
  kafkaPassword: string;
  registryPassword: string;
  /** 32 bytes, hexadecimal. Without it every stored identity key is meaningless. */
  identityPepper: string;
  /** Signs cursors; without it readers start from the beginning. */
  cursorSecret: string;
  /** Private keys that open sealed keys, the newest first. Only services that sign get them. */
  signerKeys: string;
  /** Signs the portal's forms and distinguishes its instances. */
  portalSecret: string;
}

const numbered = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => prefix + (index + 1));

/** Analyst accounts in users.xml: without raw ids, and with them. */
export const ANALYST_POOL: readonly string[] = [...numbered('analyst_', 8), ...numbered('analyst_raw_', 4)];

/** Letters and digits only, because they go into addresses and configuration files. */
const secret = () => randomBytes(32).toString('hex');

/** Missing secrets are created. */
export function loadSecrets(paths: StackPaths): Secrets {
  const path = join(paths.state, 'secrets.json');
  const kept = readJsonFile(path) as Partial<Secrets> | null;
  const dropped = join(paths.state, 'dropped-accounts');
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

/** SIGNER_PUBLIC_KEY: the public half of the newest key pair. */
export function signerPublicKeyOf({ signerKeys }: Pick<Secrets, 'signerKeys'>): string {
  const [newest] = JSON.parse(Buffer.from(signerKeys, 'base64url').toString('utf8'));
  const { kty, crv, x, y } = newest;
  return toSetting({ kty, crv, x, y });
}

/** SIGNER_KEYS with one new key pair. */
export function makeSignerKeys(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return toSetting([privateKey.export({ format: 'jwk' })]);
}

/** base64url needs no quoting. */
const toSetting = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
