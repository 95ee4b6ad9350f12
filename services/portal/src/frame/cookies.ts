import { createHash } from 'node:crypto';

/** The cookie that a session stands in. */
export interface SessionCookie {
  /** The session's text; null when the request has none. */
  read(header: string | undefined): string | null;
  /** Value of `set-cookie` that gives it to the browser. */
  give(text: string): string;
  /** Value of `set-cookie` that takes it away. */
  take(): string;
}

/** What a session's text is made of, so that nothing else is looked up. */
const TEXT = /^[A-Za-z0-9_-]{43}$/;
const INSTANCE_CHARACTERS = 8;
/** As long as a session can last at most: it ends on the server. */
const MAX_AGE_S = 7 * 24 * 60 * 60;

/**
 * The cookie of one instance: browsers send cookies to every port of a host, so its name has something of the instance's
 * own. With https it is bound to the host (`__Host-`); without, which is for the own machine only, a browser would not
 * keep such a cookie.
 * @param origin PORTAL_ORIGIN
 */
export function createSessionCookie(origin: string, secret: Buffer): SessionCookie {
  const isSecure = origin.startsWith('https:');
  const instance = createHash('sha256').update('instance').update(secret).digest('hex').slice(0, INSTANCE_CHARACTERS);
  const name = `${isSecure ? '__Host-' : ''}playline-${instance}`;
  const rules = `Path=/; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`;
  return {
    read: (header = '') => {
      const values = header.split(';').flatMap((pair) => {
        const [key = '', value = ''] = pair.split('=', 2);
        return key.trim() === name ? [value.trim()] : [];
      });
      // Two of one name come from two places: nobody can say which of them is ours.
      const [value = ''] = values.length === 1 ? values : [];
      return TEXT.test(value) ? value : null;
    },
    give: (text) => `${name}=${text}; Max-Age=${MAX_AGE_S}; ${rules}`,
    take: () => `${name}=; Max-Age=0; ${rules}`,
  };
}
