import { invalidField } from '@playline/errors';

const LOGIN_CHARACTERS_MIN = 3;
/** Maximum length of an email address. */
const LOGIN_CHARACTERS_MAX = 254;
const NAME_CHARACTERS_MAX = 200;
/** Invisible characters could make two logins appear identical. */
const INVISIBLE = /[\p{C}\p{Z}]/u;
/** Control characters, including line breaks, terminal escapes and text direction marks. */
const CONTROL = /\p{C}/u;

/** Converts a login to its stored form: NFKC, lower case, trimmed. */
export function normalizeLogin(login: string): string {
  // Lower-casing can produce an unnormalised string, for example from a capital I with a dot.
  return login.normalize('NFKC').toLowerCase().normalize('NFKC').trim();
}

/** @throws PublicError VALIDATION_ERROR unless the login has 3 to 254 visible characters */
export function toLogin(text: string): string {
  const login = normalizeLogin(text);
  const length = [...login].length;
  if (length < LOGIN_CHARACTERS_MIN || length > LOGIN_CHARACTERS_MAX || INVISIBLE.test(login))
    throw invalidField(
      'login',
      `A login must have ${LOGIN_CHARACTERS_MIN} to ${LOGIN_CHARACTERS_MAX} characters and no spaces.`,
    );
  return login;
}

/** @throws PublicError VALIDATION_ERROR unless the name has 1 to 200 characters */
export function toPersonName(text: string): string {
  const name = text.normalize('NFC').trim();
  if (name !== '' && [...name].length <= NAME_CHARACTERS_MAX && !CONTROL.test(name)) return name;
  throw invalidField('name', `A name must have 1 to ${NAME_CHARACTERS_MAX} characters.`);
}

/** Placeholder origin for relative URLs; only the path is used. */
const BASE = 'http://base.invalid';
const HOME = '/';
const PATH_CHARACTERS_MAX = 2000;

/** Returns the portal path to open after sign-in, or `/` if a browser could interpret the path as another site. */
export function toReturnPath(wanted: string | null | undefined): string {
  if (typeof wanted !== 'string' || wanted.length > PATH_CHARACTERS_MAX) return HOME;
  // Browsers treat backslashes as slashes, and strip tabs and line breaks.
  if (!/^\/(?!\/)[\x21-\x7e]*$/.test(wanted) || wanted.includes('\\')) return HOME;
  const url = URL.parse(wanted, BASE);
  if (url === null || url.origin !== BASE || url.pathname.startsWith('//')) return HOME;
  return url.pathname + url.search;
}
