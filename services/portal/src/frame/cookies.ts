import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** A cookie of ours. */
export interface PortalCookie {
  /** Its text; null when the request has none, or one that is none of ours. */
  read(header: string | undefined): string | null;
  /** Value of `set-cookie` that gives it to the browser. */
  toSetCookie(text: string): string;
  /** Value of `set-cookie` that takes it away. */
  toClearCookie(): string;
}

/** The cookie that a session stands in. */
export type SessionCookie = PortalCookie;

/** What tells cookies of one portal apart. */
interface CookieKind {
  readonly name: string;
  /** What its text looks like; a cookie with another text is not looked up. */
  readonly text: RegExp;
  readonly maxAgeS: number;
}

const INSTANCE_CHARACTERS = 8;
/** As long as a session can last at most: it ends on the server. */
const SESSION_MAX_AGE_S = 7 * 24 * 60 * 60;
const SESSION_TEXT = /^[A-Za-z0-9_-]{43}$/;
/** Whoever is at a provider has it with them: 256 bits, and the code of a link where they have one. */
const PROVIDER_TEXT = /^[A-Za-z0-9_-]{43}\.[A-Za-z0-9_-]{0,100}$/;

/**
 * The cookie of one instance: browsers send cookies to every port of a host, so its name has something of the instance's
 * own. With https it is bound to the host (`__Host-`); without, which is for the own machine only, a browser would not
 * keep such a cookie.
 * @param origin PORTAL_ORIGIN
 */
export function createSessionCookie(origin: string, secret: Buffer): SessionCookie {
  return createCookie(origin, secret, { name: 'playline', text: SESSION_TEXT, maxAgeS: SESSION_MAX_AGE_S });
}

/**
 * The cookie of a browser that was sent to a provider: it comes back with the browser, from another site (`SameSite=Lax`).
 * @param maxAgeS as long as it may be away
 */
export function createProviderCookie(origin: string, secret: Buffer, maxAgeS: number): PortalCookie {
  return createCookie(origin, secret, { name: 'playline-way', text: PROVIDER_TEXT, maxAgeS });
}

/** The cookie of a browser in which somebody has signed in before: tries of others do not keep them out there. */
export interface BrowserCookie {
  /** The id of the browser, if the account has signed in there; else null. */
  read(header: string | undefined, accountId: string): string | null;
  /** Value of `set-cookie` for a browser in which the account has signed in. */
  toSetCookie(accountId: string): string;
}

/** Half a year: whoever has not signed in for longer counts as in a new browser. */
const BROWSER_MAX_AGE_S = 180 * 24 * 60 * 60;
const BROWSER_TEXT = /^[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}$/;
const BROWSER_ID_BYTES = 16;

/** It is signed for one account and lets nobody in, so nothing is stored about it. */
export function createBrowserCookie(origin: string, secret: Buffer): BrowserCookie {
  const kind = { name: 'playline-browser', text: BROWSER_TEXT, maxAgeS: BROWSER_MAX_AGE_S };
  const cookie = createCookie(origin, secret, kind);
  const sign = (id: string, accountId: string) =>
    createHmac('sha256', secret).update(`browser ${id} ${accountId}`).digest();
  return {
    read: (header, accountId) => {
      const [id = '', signature = ''] = cookie.read(header)?.split('.') ?? [];
      if (id === '') return null;
      const sent = Buffer.from(signature, 'base64url');
      const right = sign(id, accountId);
      return sent.length === right.length && timingSafeEqual(sent, right) ? id : null;
    },
    toSetCookie: (accountId) => {
      const id = randomBytes(BROWSER_ID_BYTES).toString('base64url');
      return cookie.toSetCookie(`${id}.${sign(id, accountId).toString('base64url')}`);
    },
  };
}

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
      // Two of one name come from two places: nobody can say which of them is ours.
      const [value = ''] = values.length === 1 ? values : [];
      return kind.text.test(value) ? value : null;
    },
    toSetCookie: (text) => `${name}=${text}; Max-Age=${kind.maxAgeS}; ${rules}`,
    toClearCookie: () => `${name}=; Max-Age=0; ${rules}`,
  };
}
