import { createHash, createPublicKey } from 'node:crypto';

/** The public half of the key pair of the process that signs: whoever has it can seal, and open nothing. */
export interface SignerPublicKey {
  readonly kty: 'EC';
  readonly crv: 'P-256';
  /** base64url */
  readonly x: string;
  /** base64url */
  readonly y: string;
  /** Thumbprint of the key (RFC 7638): what is sealed names the key that opens it. */
  readonly kid: string;
}

/**
 * Reads SIGNER_PUBLIC_KEY: a JWK as JSON, or the base64url of it.
 * @throws Error that never holds any of the text: it may be the wrong half
 */
export function parseSignerPublicKey(text: string): SignerPublicKey {
  const jwk = readJwkText(text);
  if (!isObject(jwk)) throw new Error('expected the public half of the signer as JWK, or the base64url of it');
  if ('d' in jwk) throw new Error('this is the private half of the signer, which nobody but the signer may have');
  return toSignerPublicKey(jwk);
}

/** The public half that a JWK of either half holds. @throws Error for a key of another kind */
export function toSignerPublicKey(jwk: object): SignerPublicKey {
  const { kty, crv, x, y } = jwk as Record<string, unknown>;
  if (kty !== 'EC' || crv !== 'P-256' || typeof x !== 'string' || typeof y !== 'string')
    throw new Error('expected a JWK of kind EC on the curve P-256');
  try {
    // A point that is not on the curve is refused here, and not when a key is to be sealed.
    createPublicKey({ key: { kty, crv, x, y }, format: 'jwk' });
  } catch {
    throw new Error('the JWK is no point of the curve P-256');
  }
  const kid = createHash('sha256').update(JSON.stringify({ crv, kty, x, y })).digest('base64url');
  return { kty, crv, x, y, kid };
}

/** JSON, as it is or as base64url; null when it is neither. */
export function readJwkText(text: string): unknown {
  const given = text.trim();
  try {
    return JSON.parse(/^[[{]/.test(given) ? given : Buffer.from(given, 'base64url').toString('utf8'));
  } catch {
    return null;
  }
}

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
