// The secrets of a stack, stored in `secrets.json`.
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
  /** Password of the account with which the portal creates analyst accounts. */
  accountsPassword: string;
  analystPassword: string;
  /** Passwords by account. `npm run analysts` assigns accounts; a start changes the passwords of dropped accounts. */
  analystPasswords: Readonly<Record<string, string>>;
  /** Password of the account whose rights views use. Only ClickHouse itself logs in with it. */
  viewsPassword: string;
  /** With this secret, the nodes of a ClickHouse cluster trust each other. */
  clusterSecret: string;
  /** Kafka and registry passwords, used only in a stack with TLS. */
  kafkaPassword: string;
  registryPassword: string;
  /** 32 bytes in hexadecimal. If the pepper is lost, all stored identity keys are useless. */
  identityPepper: string;
  /** Key that signs cursors. If the key is lost, readers must start from the beginning. */
  cursorSecret: string;
  /** Private keys that decrypt sealed keys, newest first. Only services that sign receive them. */
  signerKeys: string;
  /** Key that signs the portal's forms and distinguishes portal instances. */
  portalSecret: string;
}

const toNames = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => prefix + (index + 1));

/** Analyst accounts in users.xml, without and with raw ids. */
export const ANALYST_POOL: readonly string[] = [...toNames('analyst_', 8), ...toNames('analyst_raw_', 4)];

/** Settings of the service that creates analyst accounts. The engine cannot create accounts, so they are assigned. */
export function analystSettings({ accountsPassword, analystPasswords }: Secrets): Record<string, string> {
  const pool = Object.entries(analystPasswords).map(([account, password]) => `${account}=${password}`);
  return { CLICKHOUSE_ACCOUNTS_PASSWORD: accountsPassword, ANALYST_ACCOUNTS: pool.join(',') };
}

/** Accounts in this folder get a new password at the next start. */
export const droppedAccountsOf = ({ state }: StackPaths): string => join(state, 'dropped-accounts');

/** Secrets contain only letters and digits, because they are used in URLs and configuration files. */
const secret = () => randomBytes(32).toString('hex');

/** Loads the secrets and creates missing ones. */
export function loadSecrets(paths: StackPaths): Secrets {
  const path = join(paths.state, 'secrets.json');
  const stored = readJsonFile(path) as Partial<Secrets> | null;
  const dropped = droppedAccountsOf(paths);
  const toAnalystPassword = (account: string) =>
    existsSync(join(dropped, account)) ? secret() : (stored?.analystPasswords?.[account] ?? secret());
  const secrets: Secrets = {
    redisPassword: stored?.redisPassword ?? secret(),
    operatorPassword: stored?.operatorPassword ?? secret(),
    writerPassword: stored?.writerPassword ?? secret(),
    readerPassword: stored?.readerPassword ?? secret(),
    portalPassword: stored?.portalPassword ?? secret(),
    accountsPassword: stored?.accountsPassword ?? secret(),
    analystPassword: stored?.analystPassword ?? secret(),
    analystPasswords: Object.fromEntries(ANALYST_POOL.map((account) => [account, toAnalystPassword(account)])),
    viewsPassword: stored?.viewsPassword ?? secret(),
    clusterSecret: stored?.clusterSecret ?? secret(),
    kafkaPassword: stored?.kafkaPassword ?? secret(),
    registryPassword: stored?.registryPassword ?? secret(),
    identityPepper: stored?.identityPepper ?? secret(),
    cursorSecret: stored?.cursorSecret ?? secret(),
    signerKeys: stored?.signerKeys ?? createSignerKeys(),
    portalSecret: stored?.portalSecret ?? secret(),
  };
  if (JSON.stringify(stored) !== JSON.stringify(secrets))
    writePrivateFile(path, `${JSON.stringify(secrets, null, 2)}\n`);
  rmSync(dropped, { recursive: true, force: true });
  return secrets;
}

/** Returns the value of SIGNER_PUBLIC_KEY: the public key of the newest key pair. */
export function signerPublicKeyOf({ signerKeys }: Pick<Secrets, 'signerKeys'>): string {
  const [newest] = JSON.parse(Buffer.from(signerKeys, 'base64url').toString('utf8'));
  const { kty, crv, x, y } = newest;
  return toSetting({ kty, crv, x, y });
}

/** Returns a value of SIGNER_KEYS with one new key pair. */
export function createSignerKeys(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return toSetting([privateKey.export({ format: 'jwk' })]);
}

/** Encodes a value as base64url, which needs no quoting. */
const toSetting = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
