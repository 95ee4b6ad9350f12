import { generateKeyPairSync } from 'node:crypto';
import type { Secrets } from './secrets.ts';

/** SIGNER_PUBLIC_KEY: of the newest key pair of whatever signs the half that others seal to. */
export function signerPublicKeyOf({ signerKeys }: Pick<Secrets, 'signerKeys'>): string {
  const [newest] = JSON.parse(Buffer.from(signerKeys, 'base64url').toString('utf8'));
  const { kty, crv, x, y } = newest;
  return toSetting({ kty, crv, x, y });
}

/** A new key pair as SIGNER_KEYS has it: a list of private JWKs, the newest first. */
export function makeSignerKeys(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return toSetting([privateKey.export({ format: 'jwk' })]);
}

/** base64url: a setting that no shell and no file of settings reads otherwise. */
const toSetting = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
