import { createHash, createPublicKey } from 'node:crypto';
import { isJsonObject } from '@playline/contracts';

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
  if ('d' in jwk) throw new Error('this is the private half of the signer, which nobody but the signer may have');
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
