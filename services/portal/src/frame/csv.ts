/**
 * What a sheet would take for a formula stands behind an apostrophe: names, details and fields hold words of anybody. Sheets
 * leave out spaces in front of one, and take the wide forms of its signs as well.
 */
const FORMULA = /^\s*[=+\-@\t\r\n\uff0b\uff0d\uff1d\uff20]/;

function toCell(value: string | number): string {
  // A number of ours is one, also below zero.
  if (typeof value === 'number') return String(value);
  const safe = FORMULA.test(value) ? `'${value}` : value;
  return `"${safe.replaceAll('"', '""')}"`;
}

/** A line as RFC 4180 has it: all texts in quotes, and none of them a formula for a sheet. */
export function toCsvLine(cells: readonly (string | number)[]): string {
  return `${cells.map(toCell).join(',')}\r\n`;
}
