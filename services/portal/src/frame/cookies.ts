import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

export interface PortalCookie {
  /** The value of the cookie; null when it is missing or malformed. */
  read(header: string | undefined): string | null;
  toSetCookie(text: string): string;
  toClearCookie(): string;
}

interface CookieKind {
  readonly name: string;
  readonly text: RegExp;
  readonly maxAgeS: number;
}

const INSTANCE_CHARACTERS = 8;
/** The longest lifetime of a session, which ends on the server. */
const SESSION_MAX_AGE_S = 7 * 24 * 60 * 60;
const SESSION_TEXT = /^[A-Za-z0-9_-]{43}$/;
/** 256 bits, and the code of a one-time link if there is one. */
const PROVIDER_TEXT = /^[A-Za-z0-9_-]{43}\.[A-Za-z0-9_-]{0,100}$/;

export function createSessionCookie(origin: string, secret: Buffer): PortalCookie {
  return createCookie(origin, secret, { name: 'playline', text: SESSION_TEXT, maxAgeS: SESSION_MAX_AGE_S });
}

/** The cookie of a browser that was redirected to the identity provider. */
export function createProviderCookie(origin: string, secret: Buffer, maxAgeS: number): PortalCookie {
  return createCookie(origin, secret, { name: 'playline-way', text: PROVIDER_TEXT, maxAgeS });
}

const BROWSER_MAX_AGE_S = 180 * 24 * 60 * 60;
const BROWSER_TEXT = /^[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}$/;
const BROWSER_ID_BYTES = 16;

export type BrowserCookie = ReturnType<typeof createBrowserCookie>;

/**
 * The cookie of a browser in which an account has signed in: attempts elsewhere do not lock the account out there. It is
 * signed for one account and grants no access by itself, so nothing is stored.
 */
export function createBrowserCookie(origin: string, secret: Buffer) {
  const kind = { name: 'playline-browser', text: BROWSER_TEXT, maxAgeS: BROWSER_MAX_AGE_S };
  const cookie = createCookie(origin, secret, kind);
  const sign = (id: string, accountId: string) =>
    createHmac('sha256', secret).update(`browser ${id} ${accountId}`).digest();
  return {
    /** The id of the browser if the account has signed in there, else null. */
    read: (header: string | undefined, accountId: string): string | null => {
      const [id = '', signature = ''] = cookie.read(header)?.split('.') ?? [];
      if (id === '') return null;
      const sent = Buffer.from(signature, 'base64url');
      const right = sign(id, accountId);
      return sent.length === right.length && timingSafeEqual(sent, right) ? id : null;
    },
    toSetCookie: (accountId: string): string => {
      const id = randomBytes(BROWSER_ID_BYTES).toString('base64url');
      return cookie.toSetCookie(`${id}.${sign(id, accountId).toString('base64url')}`);
    },
  };
}

/**
 * Browsers send cookies to every port of a host, so the name contains a digest of the instance's secret. With https the
 * cookie is bound to the host (`__Host-`); without, browsers would reject that prefix.
 */
function createCookie(origin: string, secret: Buffer, kind: CookieKind): PortalCookie {
  const isSecure = origin.startsWith('https:');
  const instance = createHash('sha256').update('instance').update(secret).digest('hex').slice(0, INSTANCE_CHARACTERS);
  const name = `${isSecure ? '__Host-' : ''}${kind.name}-${instance}`;
  const rules = `Path=/; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`;
  return {
    read: (header = '') => {
      const values = header.split(';').flatMap((pair) => {
        const [key = '', value = ''] = pair.split('=', 2);
        return key.trim() === name ? [value.trim()] : [];
      });
      // Two cookies of one name have different sources: neither is trusted.
      const [value = ''] = values.length === 1 ? values : [];
      return kind.text.test(value) ? value : null;
    },
    toSetCookie: (text) => `${name}=${text}; Max-Age=${kind.maxAgeS}; ${rules}`,
    toClearCookie: () => `${name}=; Max-Age=0; ${rules}`,
  };
}
