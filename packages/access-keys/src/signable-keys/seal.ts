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
