// Format of sealed private keys, and the signer's public keys.
import { createHash, createPublicKey } from 'node:crypto';
import { isJsonObject } from '@playline/contracts';

/** Each private key is sealed to a public key with a new ephemeral key (RFC 7518, sections 4.6 and 5.3). */
export const SEAL_ALGORITHMS = { alg: 'ECDH-ES', enc: 'A256GCM' } as const;

/** The header is authenticated, and can be read without a key. */
export interface SealHeader {
  /** Id of the key pair that can decrypt the sealed key. */
  readonly kid: string;
  readonly environmentId: string;
  /** `0x` and 40 lower-case hexadecimal digits. */
  readonly address: string;
}

export const ADDRESS = /^0x[0-9a-f]{40}$/;

/** @throws Error for an unknown format */
export function parseSealHeader(sealed: string): SealHeader {
  const parts = sealed.split('.');
  const { alg, enc, kid, environmentId, address, ...rest } = headerOf(parts[0] ?? '');
  const isKnown = parts.length === 5 && alg === SEAL_ALGORITHMS.alg && enc === SEAL_ALGORITHMS.enc;
  // `epk` is the ephemeral key. Any additional member could change how the key is decrypted.
  const unknown = Object.keys(rest).filter((name) => name !== 'epk');
  if (!isKnown || unknown.length > 0) throw new Error('the sealed key has an unknown format');
  if (typeof kid !== 'string' || typeof environmentId !== 'string' || typeof address !== 'string')
    throw new Error('the sealed key must contain a key id, an environment and an address');
  return { kid, environmentId, address };
}

function headerOf(part: string): Record<string, unknown> {
  try {
    const header = JSON.parse(Buffer.from(part, 'base64url').toString('utf8'));
    return typeof header === 'object' && header !== null ? header : {};
  } catch {
    return {};
  }
}

export function findSealMismatch(
  header: SealHeader,
  record: { readonly environmentId: string; readonly address: string },
): string | null {
  if (header.environmentId !== record.environmentId) return 'the key was sealed for another environment';
  return header.address === record.address ? null : 'the key was sealed for another address';
}

/** A public key, which can seal private keys but cannot decrypt them. */
export interface SignerPublicKey {
  readonly kty: 'EC';
  readonly crv: 'P-256';
  /** base64url */
  readonly x: string;
  readonly y: string;
  /** Thumbprint (RFC 7638). Sealed keys contain the thumbprint of the key that can decrypt them. */
  readonly kid: string;
}

/** Parses SIGNER_PUBLIC_KEY, a JWK as JSON or base64url. Errors never quote the value, which may be a private key. */
export function parseSignerPublicKey(text: string): SignerPublicKey {
  const jwk = readJwkText(text);
  if (!isJsonObject(jwk)) throw new Error('expected a public JWK as JSON or base64url');
  if ('d' in jwk) throw new Error('this is a private key, which only the signer may have: use the public key');
  return toSignerPublicKey(jwk);
}

/** @param jwk public or private. @throws Error for any other key type */
export function toSignerPublicKey(jwk: object): SignerPublicKey {
  const { kty, crv, x, y } = jwk as Record<string, unknown>;
  if (kty !== 'EC' || crv !== 'P-256' || typeof x !== 'string' || typeof y !== 'string')
    throw new Error('expected an EC JWK on the P-256 curve');
  try {
    // Rejects points that are not on the curve.
    createPublicKey({ key: { kty, crv, x, y }, format: 'jwk' });
  } catch {
    throw new Error('the JWK is not a point on the P-256 curve');
  }
  const kid = createHash('sha256').update(JSON.stringify({ crv, kty, x, y })).digest('base64url');
  return { kty, crv, x, y, kid };
}

/** Parses JSON or base64url-encoded JSON; returns null if the value is invalid. */
export function readJwkText(text: string): unknown {
  const trimmed = text.trim();
  try {
    return JSON.parse(/^[[{]/.test(trimmed) ? trimmed : Buffer.from(trimmed, 'base64url').toString('utf8'));
  } catch {
    return null;
  }
}
