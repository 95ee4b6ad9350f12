/**
 * CSV files (RFC 4180) that spreadsheets do not interpret as formulas. Spreadsheets ignore leading spaces, accept
 * full-width signs, and may split cells at semicolons, tabs and line breaks. An apostrophe prevents this.
 */
const SIGN = '[=+\\-@\\uff0b\\uff0d\\uff1d\\uff20]';
const BREAK = '\\t\\n\\v\\f\\r\\u0085\\u2028\\u2029';
const FORMULA = new RegExp(`(?<=^|[;${BREAK}])(?=(?:[^\\S${BREAK}]|["'])*${SIGN})|^(?=\\s*[\\t\\r\\n])`, 'g');

function toCell(value: string | number): string {
  if (typeof value === 'number') return String(value);
  return `"${value.replaceAll(FORMULA, "'").replaceAll('"', '""')}"`;
}

export function toCsvLine(cells: readonly (string | number)[]): string {
  return `${cells.map(toCell).join(',')}\r\n`;
}

interface CsvOptions<T, P> {
  readonly columns: readonly string[];
  readonly toCells: (line: T) => readonly (string | number)[];
  /** Creates the last line of a truncated file. */
  readonly toLastLine?: (position: P) => string;
}

/** @param batches returns the position at which the result was truncated; null if the result is complete */
export async function* toCsv<T, P>(
  batches: AsyncGenerator<readonly T[], P | null>,
  { columns, toCells, toLastLine }: CsvOptions<T, P>,
): AsyncGenerator<string> {
  let text = toCsvLine(columns);
  const end: { position: P | null } = { position: null };
  async function* capturePosition() {
    end.position = yield* batches;
  }
  for await (const lines of capturePosition()) {
    for (const line of lines) text += toCsvLine(toCells(line));
    if (lines.length === 0) continue;
    yield text;
    text = '';
  }
  if (text !== '') yield text;
  if (end.position !== null && toLastLine !== undefined) yield toCsvLine([toLastLine(end.position)]);
}

export const CSV_LINES_MAX = 100_000;

export const toIso = (ms: number): string => new Date(ms).toISOString();

export const CSV_TYPE = 'text/csv; charset=utf-8';
