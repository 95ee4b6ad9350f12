/** Queries the portal's views in ClickHouse, and reads long results one page at a time. */
import { PublicError } from '@playline/errors';
import { ClickHouseFault, type QueryOptions, type QueryRows, quoteText } from '@playline/stores';

/** An argument of a view: text, a whole number, or a list of texts. */
export type Argument = string | number | readonly string[];
type Arguments = Readonly<Record<string, Argument>>;

/** An expression over the columns of a view, and how its value is read. */
interface Column<T> {
  readonly sql: string;
  readonly read: (value: unknown) => T;
}
export type Columns<T> = { readonly [K in keyof T]: Column<T[K]> };

export interface ViewQuery<T> {
  readonly view: string;
  /** With several lists of arguments, the view is read once with each. */
  readonly args: Arguments | readonly Arguments[];
  readonly columns: Columns<T>;
  /** `WHERE` or `ORDER BY` and what follows. Values from outside must be literals (`quoteText`). */
  readonly tail?: string;
  readonly rowsMax: number;
}

/** Epoch milliseconds of a column with milliseconds. */
export const msOf = (column: string): string => `toUnixTimestamp64Milli(${column})`;

export const text = (sql: string): Column<string> => ({ sql, read: String });
export const number = (sql: string): Column<number> => ({ sql, read: Number });
export const millis = (column: string): Column<number> => number(msOf(column));
/** Null for NULL and for the epoch, which the views use for "not yet". */
export const millisOrNull = (column: string): Column<number | null> => ({
  sql: msOf(column),
  read: (value) => (Number(value) > 0 ? Number(value) : null),
});
export const orNull = <T>({ sql, read }: Column<T>): Column<T | null> => ({
  sql,
  read: (value) => (value == null ? null : read(value)),
});

/** Codes of ClickHouse for the account's limits: time, rows, bytes, memory and size of the result. */
const LIMIT_CODES: readonly string[] = ['158', '159', '160', '241', '307', '396'];
/** The quota of the project is used up (users.xml). */
const QUOTA_EXCEEDED = '201';
/** The interval of that quota. */
const QUOTA_S = 10;

/**
 * Queries a view. Every argument is sent as a literal of its type, so none can be read as SQL.
 * @throws PublicError VALIDATION_ERROR beyond the limits of a page, TOO_MANY_REQUESTS_ERROR beyond the project's quota;
 *   else what the store throws
 */
export async function queryView<T>(query: QueryRows, viewQuery: ViewQuery<T>, options?: QueryOptions): Promise<T[]> {
  const { view, args, tail = '', rowsMax } = viewQuery;
  const columns = Object.entries(viewQuery.columns) as [string, Column<unknown>][];
  const expressions = columns.map(([, { sql }]) => sql).join(', ');
  const sql = `SELECT ${expressions} FROM ${toSource(view, args)} ${tail} LIMIT ${rowsMax}`;
  try {
    const rows: T[] = [];
    for await (const values of query(sql, options))
      rows.push(Object.fromEntries(columns.map(([name, { read }], at) => [name, read(values[at])])) as T);
    return rows;
  } catch (fault) {
    throw fault instanceof ClickHouseFault ? toPublicError(fault) : fault;
  }
}

function toSource(view: string, args: Arguments | readonly Arguments[]): string {
  const calls = [args].flat().map((each: Arguments) => {
    const given = Object.entries(each).map(([name, value]) => `${name} = ${toLiteral(value)}`);
    return `${view}(${given.join(', ')})`;
  });
  if (calls.length === 1) return calls.join('');
  return `(${calls.map((call) => `SELECT * FROM ${call}`).join(' UNION ALL ')})`;
}

function toLiteral(value: Argument): string {
  if (typeof value === 'number') return String(Math.trunc(value));
  return typeof value === 'string' ? quoteText(value) : `[${value.map(quoteText).join(',')}]`;
}

function toPublicError(fault: ClickHouseFault): Error {
  if (fault.code === QUOTA_EXCEEDED)
    return new PublicError('TOO_MANY_REQUESTS_ERROR', {
      message: `Your project has reached its read quota. Try again in ${QUOTA_S} seconds.`,
      retryAfterS: QUOTA_S,
      cause: fault,
    });
  if (!LIMIT_CODES.includes(fault.code)) return fault;
  return new PublicError('VALIDATION_ERROR', {
    message: 'This query exceeds the limits of a page. Choose a shorter time range, or filter by name.',
    cause: fault,
  });
}

/** Whether a query was refused because it exceeds the limits of a page. */
export const exceedsReadLimits = (fault: unknown): boolean =>
  fault instanceof PublicError && fault.cause instanceof ClickHouseFault && LIMIT_CODES.includes(fault.cause.code);

/** A search that has not filled its page after this time returns how far it got. */
export const SEARCH_MAX_MS = 4_000;

/** One page of a long result. */
interface ResultPage<L, P> {
  readonly lines: readonly L[];
  /** Where the next page begins; null when there is none. */
  readonly next: P | null;
}

interface PagesOptions<P> {
  /** Read only what follows this position. */
  readonly after?: P | undefined;
  readonly linesMax: number;
  /** Lines of one query at most. The first query reads only `FIRST_LINES`. */
  readonly perQuery: number;
}

/** As many lines as a page shows, so that a file begins as soon as a page would. */
export const FIRST_LINES = 100;

/**
 * Reads a long result, one query for each page.
 * @param readPage reads at most so many lines after a position, or from the beginning
 * @returns the position where the result was cut off, null when it is complete
 */
export async function* readPages<L, P>(
  readPage: (linesMax: number, after: P | undefined) => Promise<ResultPage<L, P>>,
  { after: first, linesMax, perQuery }: PagesOptions<P>,
): AsyncGenerator<readonly L[], P | null> {
  let after = first;
  let most = Math.min(FIRST_LINES, perQuery);
  for (let left = linesMax; left > 0; most = perQuery) {
    const { lines, next } = await readPage(Math.min(left, most), after);
    left -= lines.length;
    yield lines;
    if (next === null) return null;
    after = next;
  }
  return after ?? null;
}

/** The page of a query without a next position: when it is full, the next page begins after its last line. */
export function toPage<L>(lines: readonly L[], linesMax: number): ResultPage<L, L> {
  return { lines, next: lines.length < linesMax ? null : (lines.at(-1) ?? null) };
}

/** Whether the reader may see ids as clients sent them. Every read that could return an id requires it. */
export type IdAccess = 'raw ids' | 'masked ids';

const SHOWN_CHARACTERS = 2;

/** Enough of an id to compare two lines of a page, too little to find its owner. */
export function maskId(id: string): string {
  return id === '' ? '' : `${[...id].slice(0, SHOWN_CHARACTERS).join('')}…`;
}

export const idFor = (idAccess: IdAccess, id: string): string => (idAccess === 'raw ids' ? id : maskId(id));
