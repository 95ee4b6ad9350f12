import { createHmac, createSecretKey, randomBytes, timingSafeEqual } from 'node:crypto';

/** The form for which a token is valid. */
interface TokenUse {
  /** Empty before sign-in. */
  readonly sessionId: string;
  readonly path: string;
  readonly action: string;
}

const LIFETIME_S = 12 * 60 * 60;
const NONCE_BYTES = 16;
const TOKEN = /^([A-Za-z0-9_-]{22})\.(\d{1,12})\.([A-Za-z0-9_-]{43})$/;

/**
 * Signed form tokens that expire after twelve hours. Tokens are not stored when they are issued. To make forms
 * single-use, the caller must record the nonce of each submitted token.
 * @param secret at least 32 bytes, shared by all processes of the portal
 */
export function createFormTokens(secret: Buffer, wallClockMs: () => number = Date.now) {
  // Created once, because creating a key object takes longer than signing.
  const key = createSecretKey(secret);
  const sign = (nonce: string, expiresS: number, { sessionId, path, action }: TokenUse) =>
    createHmac('sha256', key)
      .update(JSON.stringify(['form', nonce, expiresS, sessionId, path, action]))
      .digest('base64url');
  const nowS = () => Math.floor(wallClockMs() / 1000);
  return {
    issue: (use: TokenUse): string => {
      const nonce = randomBytes(NONCE_BYTES).toString('base64url');
      const expiresS = nowS() + LIFETIME_S;
      return `${nonce}.${expiresS}.${sign(nonce, expiresS, use)}`;
    },
    /** @returns the nonce and the remaining lifetime of the token; null for an invalid token */
    check: (token: string, use: TokenUse) => {
      const [, nonce = '', expires = '', signature = ''] = TOKEN.exec(token) ?? [];
      if (nonce === '') return null;
      const lifetimeS = Number(expires) - nowS();
      const isSigned = timingSafeEqual(Buffer.from(sign(nonce, Number(expires), use)), Buffer.from(signature));
      return isSigned && lifetimeS > 0 ? { nonce, lifetimeS } : null;
    },
  };
}
