/** How ClickHouse reads and orders values. */

/** A literal of a text. Only the quote and the backslash need an escape. */
export const quoteText = (text: string): string => `'${text.replace(/[\\']/g, '\\$&')}'`;

/** A literal of arbitrary bytes. */
export const quoteBytes = (bytes: Buffer): string => `'${bytes.toString('hex').replace(/../g, '\\x$&')}'`;

/** ClickHouse compares the last eight bytes of a UUID first. In its text they begin after the third hyphen. */
const HALF_AT = 19;
const toSortable = (id: string) => id.slice(HALF_AT) + id.slice(0, HALF_AT);

/** Below zero when the UUID `a` comes before `b`, zero for the same. @param a in lower case, as `b` */
export function compareUuids(a: string, b: string): number {
  const [left, right] = [toSortable(a), toSortable(b)];
  return left < right ? -1 : left > right ? 1 : 0;
}
