import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

export interface PortalCookie {
  /** Returns the cookie value; null if the cookie is missing or malformed. */
  read(header: string | undefined): string | null;
  toSetCookie(value: string): string;
  toClearCookie(): string;
}

interface CookieOptions {
  readonly name: string;
  readonly pattern: RegExp;
  readonly maxAgeS: number;
}

const INSTANCE_CHARACTERS = 8;
/** Maximum session lifetime. The server enforces earlier expiry. */
const SESSION_MAX_AGE_S = 7 * 24 * 60 * 60;
const SESSION_VALUE = /^[A-Za-z0-9_-]{43}$/;
/** A 256-bit value and an optional link code. */
const PROVIDER_VALUE = /^[A-Za-z0-9_-]{43}\.[A-Za-z0-9_-]{0,100}$/;

export function createSessionCookie(origin: string, secret: Buffer): PortalCookie {
  return createCookie(origin, secret, { name: 'playline', pattern: SESSION_VALUE, maxAgeS: SESSION_MAX_AGE_S });
}

/** Binds an OpenID Connect redirect to the browser that started it. */
export function createProviderCookie(origin: string, secret: Buffer, maxAgeS: number): PortalCookie {
  return createCookie(origin, secret, { name: 'playline-way', pattern: PROVIDER_VALUE, maxAgeS });
}

/** Form-encoded. Longer values are not read. */
const OPENED_VALUE = /^[\w.*%+&=-]{1,2000}$/;

/** The environments that the browser opened last. Grants no access. */
export function createOpenedCookie(origin: string, secret: Buffer): PortalCookie {
  return createCookie(origin, secret, { name: 'playline-opened', pattern: OPENED_VALUE, maxAgeS: BROWSER_MAX_AGE_S });
}

const BROWSER_MAX_AGE_S = 180 * 24 * 60 * 60;
const BROWSER_VALUE = /^[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}$/;
const BROWSER_ID_BYTES = 16;

/**
 * Identifies a browser in which the account has signed in before, so that failed attempts from other browsers do not
 * block sign-ins from this browser. The cookie is signed for one account and grants no access.
 */
export function createBrowserCookie(origin: string, secret: Buffer) {
  const options = { name: 'playline-browser', pattern: BROWSER_VALUE, maxAgeS: BROWSER_MAX_AGE_S };
  const cookie = createCookie(origin, secret, options);
  const sign = (id: string, accountId: string) =>
    createHmac('sha256', secret).update(`browser ${id} ${accountId}`).digest();
  return {
    /** Returns the browser id if the account has signed in from this browser; null otherwise. */
    read: (header: string | undefined, accountId: string): string | null => {
      const [id = '', signature = ''] = cookie.read(header)?.split('.') ?? [];
      if (id === '') return null;
      const actual = Buffer.from(signature, 'base64url');
      const expected = sign(id, accountId);
      return actual.length === expected.length && timingSafeEqual(actual, expected) ? id : null;
    },
    toSetCookie: (accountId: string): string => {
      const id = randomBytes(BROWSER_ID_BYTES).toString('base64url');
      return cookie.toSetCookie(`${id}.${sign(id, accountId).toString('base64url')}`);
    },
  };
}

/**
 * The cookie name contains a digest of the secret, because browsers send cookies to all ports of a host. The `__Host-`
 * prefix requires https.
 */
export function createCookie(origin: string, secret: Buffer, options: CookieOptions): PortalCookie {
  const isSecure = origin.startsWith('https:');
  const instance = createHash('sha256').update('instance').update(secret).digest('hex').slice(0, INSTANCE_CHARACTERS);
  const name = `${isSecure ? '__Host-' : ''}${options.name}-${instance}`;
  const attributes = `Path=/; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`;
  return {
    read: (header = '') => {
      const values = header.split(';').flatMap((pair) => {
        const [key = '', ...value] = pair.split('=');
        return key.trim() === name ? [value.join('=').trim()] : [];
      });
      // A duplicate cookie may come from an attacker, so none of the values is trusted.
      const [value = ''] = values.length === 1 ? values : [];
      return options.pattern.test(value) ? value : null;
    },
    toSetCookie: (value) => `${name}=${value}; Max-Age=${options.maxAgeS}; ${attributes}`,
    toClearCookie: () => `${name}=; Max-Age=0; ${attributes}`,
  };
}
