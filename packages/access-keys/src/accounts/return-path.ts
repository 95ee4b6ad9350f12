/** Where nobody is. */
const NOWHERE = 'http://nowhere.invalid';
const HOME = '/';
const PATH_CHARACTERS_MAX = 2000;

/**
 * Where somebody goes on after signing in: a path of this portal, whatever a link has asked for.
 * @returns the path with its question, or `/` for everything that a browser could take for another address
 */
export function toReturnPath(wanted: string | null | undefined): string {
  if (typeof wanted !== 'string' || wanted.length > PATH_CHARACTERS_MAX) return HOME;
  // Browsers take a backslash for a slash, and leave out tabs and line breaks.
  if (!/^\/(?!\/)[\x21-\x7e]*$/.test(wanted) || wanted.includes('\\')) return HOME;
  const url = URL.parse(wanted, NOWHERE);
  if (url === null || url.origin !== NOWHERE || url.pathname.startsWith('//')) return HOME;
  return url.pathname + url.search;
}
