import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto';
import { createCookie } from './cookies.ts';

const LIFETIME_S = 10 * 60;
/** Browsers limit a cookie to 4,096 bytes. */
const VALUE = /^[A-Za-z0-9_-]{60,3900}$/;
const SECRET_FIELDS = /password|repeated|response|secret|token/;
const [IV_BYTES, TAG_BYTES] = [12, 16];

/** The account that submitted the form, and the page of the form. */
interface KeptFor {
  readonly accountId: string;
  readonly path: string;
}

/**
 * Keeps the values of a form in an encrypted cookie while its user signs in again, without passwords and secrets. The
 * cookie is valid for one account and page. Servers store nothing, because forms can contain the ids of people.
 */
export function createKeptForms(origin: string, secret: Buffer, wallClockMs: () => number = Date.now) {
  const cookie = createCookie(origin, secret, { name: 'playline-form', pattern: VALUE, maxAgeS: LIFETIME_S });
  const key = createHmac('sha256', secret).update('kept forms').digest();
  const toContext = ({ accountId, path }: KeptFor) => Buffer.from(JSON.stringify([accountId, path]));
  return {
    /** @returns the value of the `set-cookie` header; null if the form is too long for a cookie */
    keep: (values: URLSearchParams, use: KeptFor): string | null => {
      const kept = [...values].filter(([name]) => !SECRET_FIELDS.test(name));
      const text = JSON.stringify([wallClockMs() + LIFETIME_S * 1000, new URLSearchParams(kept).toString()]);
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(toContext(use));
      const sealed = Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
      const value = sealed.toString('base64url');
      return VALUE.test(value) ? cookie.toSetCookie(value) : null;
    },
    /** Returns the kept values; null if there are none for this account and page. */
    read: (header: string | undefined, use: KeptFor): URLSearchParams | null => {
      const sealed = Buffer.from(cookie.read(header) ?? '', 'base64url');
      if (sealed.length <= IV_BYTES + TAG_BYTES) return null;
      const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, IV_BYTES)).setAAD(toContext(use));
      decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
      try {
        const text = decipher.update(sealed.subarray(IV_BYTES, -TAG_BYTES), undefined, 'utf8') + decipher.final('utf8');
        const [expiresMs, values] = JSON.parse(text);
        return expiresMs > wallClockMs() ? new URLSearchParams(values) : null;
      } catch {
        // Kept for another account or page.
        return null;
      }
    },
    clear: cookie.toClearCookie,
  };
}
