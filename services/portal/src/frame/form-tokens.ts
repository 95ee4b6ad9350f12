import { createHmac, createSecretKey, randomBytes, timingSafeEqual } from 'node:crypto';

/** A token is valid for one action of one page in one session. */
interface TokenUse {
  /** '' before sign-in. */
  readonly sessionId: string;
  readonly path: string;
  readonly action: string;
}

export type FormTokens = ReturnType<typeof createFormTokens>;

const LIFETIME_S = 12 * 60 * 60;
const NONCE_BYTES = 16;
const FORM = /^([A-Za-z0-9_-]{22})\.(\d{1,12})\.([A-Za-z0-9_-]{43})$/;

/**
 * Signed tokens that expire after twelve hours. Nothing is stored, so showing a page costs no write; the caller spends
 * the nonce.
 * @param secret at least 32 bytes, the same in every process of the portal
 */
export function createFormTokens(secret: Buffer, wallClockMs: () => number = Date.now) {
  // Created once: creating a key object takes longer than signing with it.
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
    /** @returns the nonce to spend, so that the form acts once; null for a forged or expired token, and for another use */
    check: (token: string, use: TokenUse) => {
      const [, nonce = '', expires = '', given = ''] = FORM.exec(token) ?? [];
      if (nonce === '') return null;
      const lifetimeS = Number(expires) - nowS();
      const isSigned = timingSafeEqual(Buffer.from(sign(nonce, Number(expires), use)), Buffer.from(given));
      return isSigned && lifetimeS > 0 ? { nonce, lifetimeS } : null;
    },
  };
}
