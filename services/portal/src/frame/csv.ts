/**
 * A text that a spreadsheet would read as a formula gets an apostrophe in front, because names, details and fields contain
 * texts of anybody. Spreadsheets ignore spaces before a formula, and accept the wide forms of its signs. Many of them
 * separate cells by semicolons or tabs and ignore quotes there, so a formula may also begin after one of these, or on a
 * new line.
 */
const SIGN = '[=+\\-@\\uff0b\\uff0d\\uff1d\\uff20]';
const BREAK = '\\t\\n\\v\\f\\r\\u0085\\u2028\\u2029';
const FORMULA = new RegExp(`(?<=^|[;${BREAK}])(?=(?:[^\\S${BREAK}]|["'])*${SIGN})|^(?=\\s*[\\t\\r\\n])`, 'g');

function toCell(value: string | number): string {
  // A number is written by us: a minus in front of it begins no formula.
  if (typeof value === 'number') return String(value);
  const safe = value.replaceAll(FORMULA, "'");
  return `"${safe.replaceAll('"', '""')}"`;
}

/** A line as RFC 4180 has it: all texts in quotes, and none of them a formula for a sheet. */
export function toCsvLine(cells: readonly (string | number)[]): string {
  return `${cells.map(toCell).join(',')}\r\n`;
}

/** What a file of CSV is made of. */
export interface CsvOptions<T> {
  readonly columns: readonly string[];
  readonly toCells: (line: T) => readonly (string | number)[];
}

/** A file of CSV, its names of columns in front: a piece of it for each list. */
export async function* toCsv<T>(
  lists: AsyncIterable<readonly T[]>,
  { columns, toCells }: CsvOptions<T>,
): AsyncGenerator<string> {
  let text = toCsvLine(columns);
  for await (const lines of lists) {
    for (const line of lines) text += toCsvLine(toCells(line));
    // An empty list makes no piece: the names of columns go out with the first lines.
    if (lines.length === 0) continue;
    yield text;
    text = '';
  }
  if (text !== '') yield text;
}

export interface LimitedCsvOptions<T, P> extends CsvOptions<T> {
  /** What the last line says where there is more than the file has. */
  readonly toLastLine: (place: P) => string;
}

/** As `toCsv`, of lists that say in the end where they were cut off; null: they are whole. */
export async function* toLimitedCsv<T, P>(
  lists: AsyncGenerator<readonly T[], P | null>,
  { toLastLine: toEnd, ...options }: LimitedCsvOptions<T, P>,
): AsyncGenerator<string> {
  const end: { place: P | null } = { place: null };
  async function* watched() {
    end.place = yield* lists;
  }
  yield* toCsv(watched(), options);
  if (end.place !== null) yield toCsvLine([toEnd(end.place)]);
}

/** Sheets take little more. Whoever needs all of it asks ClickHouse itself. */
export const CSV_LINES_MAX = 100_000;

/** A time as files have it. */
export const toIso = (ms: number): string => new Date(ms).toISOString();

export const CSV_TYPE = 'text/csv; charset=utf-8';
