// Sealed private keys, and the signer's keys.
import { createHash, createPublicKey } from 'node:crypto';
import { isJsonObject } from '@playline/contracts';

/** Sealed to a public key, with an ephemeral key each (RFC 7518, 4.6 and 5.3). */
export const SEAL_ALGORITHMS = { alg: 'ECDH-ES', enc: 'A256GCM' } as const;

/** Readable without a key, and authenticated. */
export interface SealHeader {
  /** Of the key pair that opens the text. */
  readonly kid: string;
  readonly environmentId: string;
  /** `0x` and 40 lower-case hexadecimal digits. */
  readonly address: string;
}

export const ADDRESS = /^0x[0-9a-f]{40}$/;

/** @throws Error for a text of another kind */
export function parseSealHeader(sealed: string): SealHeader {
  const parts = sealed.split('.');
  const { alg, enc, kid, environmentId, address, ...rest } = headerOf(parts[0] ?? '');
  const isKnown = parts.length === 5 && alg === SEAL_ALGORITHMS.alg && enc === SEAL_ALGORITHMS.enc;
  // `epk` is the ephemeral key. Other members could change how the text is decrypted.
  const unknown = Object.keys(rest).filter((name) => name !== 'epk');
  if (!isKnown || unknown.length > 0) throw new Error('the sealed text has an unknown format');
  if (typeof kid !== 'string' || typeof environmentId !== 'string' || typeof address !== 'string')
    throw new Error('the sealed text does not name its key, environment and address');
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
  if (header.environmentId !== record.environmentId) return 'it was sealed for another environment';
  return header.address === record.address ? null : 'it was sealed for another address';
}

/** Seals keys, but cannot open them. */
export interface SignerPublicKey {
  readonly kty: 'EC';
  readonly crv: 'P-256';
  /** base64url */
  readonly x: string;
  readonly y: string;
  /** Thumbprint (RFC 7638), by which a sealed text names the key that opens it. */
  readonly kid: string;
}

/** SIGNER_PUBLIC_KEY: a JWK as JSON or base64url. @throws Error without the text, which may be the private key */
export function parseSignerPublicKey(text: string): SignerPublicKey {
  const jwk = readJwkText(text);
  if (!isJsonObject(jwk)) throw new Error('expected a public JWK as JSON or base64url');
  if ('d' in jwk) throw new Error('this is a private key, which only the signer may have; use its public half');
  return toSignerPublicKey(jwk);
}

/** @param jwk public or private. @throws Error for a key of another kind */
export function toSignerPublicKey(jwk: object): SignerPublicKey {
  const { kty, crv, x, y } = jwk as Record<string, unknown>;
  if (kty !== 'EC' || crv !== 'P-256' || typeof x !== 'string' || typeof y !== 'string')
    throw new Error('expected a JWK of kind EC on the curve P-256');
  try {
    // Refuses a point that is not on the curve.
    createPublicKey({ key: { kty, crv, x, y }, format: 'jwk' });
  } catch {
    throw new Error('the JWK is no point of the curve P-256');
  }
  const kid = createHash('sha256').update(JSON.stringify({ crv, kty, x, y })).digest('base64url');
  return { kty, crv, x, y, kid };
}

/** JSON, plain or as base64url; else null. */
export function readJwkText(text: string): unknown {
  const given = text.trim();
  try {
    return JSON.parse(/^[[{]/.test(given) ? given : Buffer.from(given, 'base64url').toString('utf8'));
  } catch {
    return null;
  }
}
