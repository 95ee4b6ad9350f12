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
