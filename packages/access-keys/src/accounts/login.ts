import { invalidField } from '@playline/errors';

const LOGIN_CHARACTERS_MIN = 3;
/** The maximum of a mail address. */
const LOGIN_CHARACTERS_MAX = 254;
const NAME_CHARACTERS_MAX = 200;
/** Invisible characters could make two logins appear the same. */
const UNSEEN = /[\p{C}\p{Z}]/u;
/** Line breaks, and characters that control a terminal or the direction of text. */
const CONTROL = /\p{C}/u;

/** The stored form of a login: NFKC, lower case, trimmed. */
export function normalizeLogin(login: string): string {
  // Lower case can denormalise a text, for example a capital I with a dot.
  return login.normalize('NFKC').toLowerCase().normalize('NFKC').trim();
}

/** @throws PublicError VALIDATION_ERROR unless the login has 3 to 254 visible characters */
export function toLogin(text: string): string {
  const login = normalizeLogin(text);
  const length = [...login].length;
  if (length < LOGIN_CHARACTERS_MIN || length > LOGIN_CHARACTERS_MAX || UNSEEN.test(login))
    throw invalidField(
      'login',
      `A login has ${LOGIN_CHARACTERS_MIN} to ${LOGIN_CHARACTERS_MAX} characters, without spaces.`,
    );
  return login;
}

/** @throws PublicError VALIDATION_ERROR unless the name has 1 to 200 characters */
export function toPersonName(text: string): string {
  const name = text.normalize('NFC').trim();
  if (name !== '' && [...name].length <= NAME_CHARACTERS_MAX && !CONTROL.test(name)) return name;
  throw invalidField('name', `A name has 1 to ${NAME_CHARACTERS_MAX} characters.`);
}

/** A host that does not exist, because only the path is used. */
const BASE = 'http://base.invalid';
const HOME = '/';
const PATH_CHARACTERS_MAX = 2000;

/** A path of the portal to open after signing in: `/` for anything that a browser could take for another site. */
export function toReturnPath(wanted: string | null | undefined): string {
  if (typeof wanted !== 'string' || wanted.length > PATH_CHARACTERS_MAX) return HOME;
  // Browsers read a backslash as a slash, and drop tabs and line breaks.
  if (!/^\/(?!\/)[\x21-\x7e]*$/.test(wanted) || wanted.includes('\\')) return HOME;
  const url = URL.parse(wanted, BASE);
  if (url === null || url.origin !== BASE || url.pathname.startsWith('//')) return HOME;
  return url.pathname + url.search;
}
