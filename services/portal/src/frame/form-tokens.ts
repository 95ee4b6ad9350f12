import { createHmac, createSecretKey, randomBytes, timingSafeEqual } from 'node:crypto';

/** What a token is good for: one deed of one page, for one session. */
export interface TokenUse {
  /** Id of the session; '' for whoever has not signed in. */
  readonly sessionId: string;
  /** The page's own path, ids included. */
  readonly path: string;
  readonly action: string;
}

/** A token that was signed here and has not expired. */
export interface ValidToken {
  /** To be spent, so that the form does what it does once. */
  readonly nonce: string;
  /** How long somebody could still send it. */
  readonly lifetimeS: number;
}

export interface FormTokens {
  /** A token for a form that is about to be shown; nothing is stored. */
  issue(use: TokenUse): string;
  /** @returns null for a token that is not ours, not for this use, or too old */
  check(token: string, use: TokenUse): ValidToken | null;
}

/** A page that was left open over a working day still works. */
const LIFETIME_S = 12 * 60 * 60;
const NONCE_BYTES = 16;
const FORM = /^([A-Za-z0-9_-]{22})\.(\d{1,12})\.([A-Za-z0-9_-]{43})$/;

/**
 * Tokens of forms: signed, bound to session, page and deed, good for twelve hours. That one is used once is for whoever
 * spends its nonce to see to; so a page costs no write.
 * @param secret at least 32 bytes, the same in every process of the portal
 */
export function createFormTokens(secret: Buffer, wallClockMs: () => number = Date.now): FormTokens {
  // Created once: creating a key object takes longer than signing with it.
  const key = createSecretKey(secret);
  const sign = (nonce: string, expiresS: number, { sessionId, path, action: deed }: TokenUse) =>
    createHmac('sha256', key)
      .update(JSON.stringify(['form', nonce, expiresS, sessionId, path, deed]))
      .digest('base64url');
  const nowS = () => Math.floor(wallClockMs() / 1000);
  return {
    issue: (use) => {
      const nonce = randomBytes(NONCE_BYTES).toString('base64url');
      const expiresS = nowS() + LIFETIME_S;
      return `${nonce}.${expiresS}.${sign(nonce, expiresS, use)}`;
    },
    check: (token, use) => {
      const [, nonce = '', expires = '', given = ''] = FORM.exec(token) ?? [];
      if (nonce === '') return null;
      const lifetimeS = Number(expires) - nowS();
      const isOurs = timingSafeEqual(Buffer.from(sign(nonce, Number(expires), use)), Buffer.from(given));
      return isOurs && lifetimeS > 0 ? { nonce, lifetimeS } : null;
    },
  };
}
