import { invalidField } from '@playline/errors';

const LOGIN_CHARACTERS_MIN = 3;
/** As an address of mail may have. */
const LOGIN_CHARACTERS_MAX = 254;
const NAME_CHARACTERS_MAX = 200;
/** Invisible characters would make two logins look the same. */
const UNSEEN = /[\p{C}\p{Z}]/u;
/** Line breaks, and characters that control a terminal or the direction of text. */
const STEERING = /\p{C}/u;

/** The form in which logins are compared and stored: normalised (NFKC), in lower case, without spaces around it. */
export function normalizeLogin(login: string): string {
  // Lower case can bring another form back, as for a capital I with a dot, so the text is normalised twice.
  return login.normalize('NFKC').toLowerCase().normalize('NFKC').trim();
}

/** The login to be kept. @throws PublicError VALIDATION_ERROR unless it has 3 to 254 characters that can be seen */
export function toLogin(text: string): string {
  const login = normalizeLogin(text);
  const length = [...login].length;
  if (length < LOGIN_CHARACTERS_MIN || length > LOGIN_CHARACTERS_MAX || UNSEEN.test(login))
    throw invalidField(
      'login',
      `A login has ${LOGIN_CHARACTERS_MIN} to ${LOGIN_CHARACTERS_MAX} characters, without spaces in between.`,
    );
  return login;
}

/** What somebody is called. @throws PublicError VALIDATION_ERROR unless it has 1 to 200 characters */
export function toPersonName(text: string): string {
  const name = text.normalize('NFC').trim();
  if (name !== '' && [...name].length <= NAME_CHARACTERS_MAX && !STEERING.test(name)) return name;
  throw invalidField('name', `A name has 1 to ${NAME_CHARACTERS_MAX} characters.`);
}

/** A host that never exists: only the path of the result is used. */
const NOWHERE = 'http://nowhere.invalid';
const HOME = '/';
const PATH_CHARACTERS_MAX = 2000;

/**
 * Where the browser goes after signing in: a path of this portal, whatever the link asked for.
 * @returns the path with its query, or `/` for anything that a browser could take for another site
 */
export function toReturnPath(wanted: string | null | undefined): string {
  if (typeof wanted !== 'string' || wanted.length > PATH_CHARACTERS_MAX) return HOME;
  // Browsers read a backslash as a slash, and drop tabs and line breaks.
  if (!/^\/(?!\/)[\x21-\x7e]*$/.test(wanted) || wanted.includes('\\')) return HOME;
  const url = URL.parse(wanted, NOWHERE);
  if (url === null || url.origin !== NOWHERE || url.pathname.startsWith('//')) return HOME;
  return url.pathname + url.search;
}
