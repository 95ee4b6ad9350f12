/** A column of rows that are sent as JSON lines, and the expression that converts it to the column of the table. */
export interface SentColumn {
  readonly name: string;
  readonly type: string;
  /** The value itself when absent. */
  readonly as?: string;
  /** Name in the table, if it differs from that in the line. */
  readonly column?: string;
}

/** Such a column of a kind of rows. */
export interface RowColumn<Row> extends SentColumn {
  readonly from: (row: Row) => unknown;
}

/** The insert of one kind of rows: its statement, and the line of a row. */
export interface SentTable<Row> {
  readonly statement: string;
  readonly toLine: (row: Row) => string;
}

/** Bytes, sent as hexadecimal digits. */
export const bytesColumn = (name: string) => ({ name, type: 'String', as: `unhex(${name})` });
/** A time, sent in epoch milliseconds. */
export const millisColumn = (name: string) => ({
  name,
  type: 'Int64',
  as: `fromUnixTimestamp64Milli(${name}, 'UTC')`,
});
/** A time, sent in epoch microseconds. */
export const microsColumn = (name: string) => ({
  name,
  type: 'Int64',
  as: `fromUnixTimestamp64Micro(${name}, 'UTC')`,
});

/** The digits of a text that begins with `0x`. */
export const digitsOf = (text: string | null | undefined): string | null => text?.slice(2) ?? null;

/**
 * The statement of an insert of JSON lines. They are sent in the body, so no log of statements contains them.
 * @param tail a clause after the source
 */
export function toLinesInsert(table: string, columns: readonly SentColumn[], tail = ''): string {
  const names = columns.map(({ name, column = name }) => column).join(', ');
  const values = columns.map(({ name, as = name, column = name }) => `${as} AS ${column}`).join(', ');
  const structure = columns.map(({ name, type }) => `${name} ${type}`).join(', ');
  return `INSERT INTO ${table} (${names}) SELECT ${values} FROM input('${structure}') ${tail} FORMAT JSONEachRow`;
}

/** @param tail an expression that makes several rows of one line */
export function createSentTable<Row>(table: string, columns: readonly RowColumn<Row>[], tail?: string): SentTable<Row> {
  return {
    statement: toLinesInsert(table, columns, tail),
    toLine: (row) => JSON.stringify(Object.fromEntries(columns.map(({ name, from }) => [name, from(row)]))),
  };
}

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
