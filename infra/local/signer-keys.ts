import { generateKeyPairSync } from 'node:crypto';
import type { Secrets } from './secrets.ts';

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
