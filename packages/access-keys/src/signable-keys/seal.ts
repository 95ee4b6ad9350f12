import { createHash, createPublicKey } from 'node:crypto';
import { isJsonObject } from '@playline/contracts';

/** How private keys are sealed: to a public key, with a new ephemeral key each time (RFC 7518, 4.6 and 5.3). */
export const SEAL_ALGORITHMS = { alg: 'ECDH-ES', enc: 'A256GCM' } as const;

/**
 * Header of a sealed key. It is readable without a key, and authenticated: after a change the rest cannot be opened.
 */
export interface SealHeader {
  /** Id of the key pair that opens it. */
  readonly kid: string;
  readonly environmentId: string;
  /** `0x` and 40 lower-case hexadecimal digits. */
  readonly address: string;
}

/** `0x` and 40 lower-case hexadecimal digits. */
export const ADDRESS = /^0x[0-9a-f]{40}$/;

/** Parses the header of a sealed key without opening it. @throws Error when it was not sealed here */
export function parseSealHeader(sealed: string): SealHeader {
  const parts = sealed.split('.');
  const { alg, enc, kid, environmentId, address, ...rest } = headerOf(parts[0] ?? '');
  const isOurs = parts.length === 5 && alg === SEAL_ALGORITHMS.alg && enc === SEAL_ALGORITHMS.enc;
  // `epk` is the ephemeral public key. Any other member could change how the text is decrypted.
  const strangers = Object.keys(rest).filter((name) => name !== 'epk');
  if (!isOurs || strangers.length > 0) throw new Error('the sealed text is not one of ours');
  if (typeof kid !== 'string' || typeof environmentId !== 'string' || typeof address !== 'string')
    throw new Error('the sealed text does not say whose it is');
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

/** Finds a mismatch between a sealed text and its record; null when they agree. */
export function findSealMismatch(
  header: SealHeader,
  record: { readonly environmentId: string; readonly address: string },
): string | null {
  if (header.environmentId !== record.environmentId) return 'it was sealed for another environment';
  return header.address === record.address ? null : 'it was sealed for another address';
}

/** Public key of the process that signs. With it one can seal keys but not open them. */
export interface SignerPublicKey {
  readonly kty: 'EC';
  readonly crv: 'P-256';
  /** base64url */
  readonly x: string;
  /** base64url */
  readonly y: string;
  /** Thumbprint of the key (RFC 7638). A sealed text names by it the key that opens it. */
  readonly kid: string;
}

/**
 * Parses SIGNER_PUBLIC_KEY: a JWK as JSON, or its base64url.
 * @throws Error that contains nothing of the text, because it may be the private key
 */
export function parseSignerPublicKey(text: string): SignerPublicKey {
  const jwk = readJwkText(text);
  if (!isJsonObject(jwk)) throw new Error('expected the public half of the signer as JWK, or the base64url of it');
  if ('d' in jwk) throw new Error('this is the private half of the signer key, which only the signer may have');
  return toSignerPublicKey(jwk);
}

/** The public key in a JWK of a public or private key. @throws Error for a key of another kind */
export function toSignerPublicKey(jwk: object): SignerPublicKey {
  const { kty, crv, x, y } = jwk as Record<string, unknown>;
  if (kty !== 'EC' || crv !== 'P-256' || typeof x !== 'string' || typeof y !== 'string')
    throw new Error('expected a JWK of kind EC on the curve P-256');
  try {
    // Refuses a point that is not on the curve here, and not only when a key is sealed.
    createPublicKey({ key: { kty, crv, x, y }, format: 'jwk' });
  } catch {
    throw new Error('the JWK is no point of the curve P-256');
  }
  const kid = createHash('sha256').update(JSON.stringify({ crv, kty, x, y })).digest('base64url');
  return { kty, crv, x, y, kid };
}

/** Parses JSON, plain or as base64url; null when it is neither. */
export function readJwkText(text: string): unknown {
  const given = text.trim();
  try {
    return JSON.parse(/^[[{]/.test(given) ? given : Buffer.from(given, 'base64url').toString('utf8'));
  } catch {
    return null;
  }
}
