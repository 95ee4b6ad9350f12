/** Queries the portal views in ClickHouse. Reads long results page by page. */
import { PublicError } from '@playline/errors';
import { ClickHouseFault, type QueryOptions, type QueryRows, quoteText } from '@playline/stores';

export type Argument = string | number | readonly string[];
type Arguments = Readonly<Record<string, Argument>>;

/** An SQL expression over the columns of a view, and a function that converts its value. */
interface Column<T> {
  readonly sql: string;
  readonly read: (value: unknown) => T;
}
export type Columns<T> = { readonly [K in keyof T]: Column<T[K]> };
export type Row<C> = { readonly [K in keyof C]: C[K] extends Column<infer T> ? T : never };

export interface ViewQuery<T> {
  readonly view: string;
  /** If this is an array, the view is queried once per element. */
  readonly args: Arguments | readonly Arguments[];
  readonly columns: Columns<T>;
  /** SQL after the `FROM` clause. Quote untrusted values with `quoteText`. */
  readonly tail?: string;
  readonly rowsMax: number;
}

/** Converts a `DateTime64(3)` column to epoch milliseconds. */
export const msOf = (column: string): string => `toUnixTimestamp64Milli(${column})`;

export const text = (sql: string): Column<string> => ({ sql, read: String });
export const number = (sql: string): Column<number> => ({ sql, read: Number });
export const millis = (column: string): Column<number> => number(msOf(column));
/** Returns null for NULL and for the epoch, which the views return for times that are not known yet. */
export const millisOrNull = (column: string): Column<number | null> => ({
  sql: msOf(column),
  read: (value) => (Number(value) > 0 ? Number(value) : null),
});
export const orNull = <T>({ sql, read }: Column<T>): Column<T | null> => ({
  sql,
  read: (value) => (value == null ? null : read(value)),
});

/** ClickHouse error codes for the account's limits on time, rows, bytes, memory and result size. */
const LIMIT_CODES: readonly string[] = ['158', '159', '160', '241', '307', '396'];
/** ClickHouse error code for an exceeded quota. The quota is defined in users.xml. */
const QUOTA_EXCEEDED = '201';
const QUOTA_S = 10;

/**
 * Queries a view. All arguments are quoted as literals, which prevents SQL injection.
 * @throws PublicError VALIDATION_ERROR if the query exceeds the read limits; TOO_MANY_REQUESTS_ERROR if the project
 *   exceeds its quota; all other store errors are rethrown
 */
export type QueryView = <T>(viewQuery: ViewQuery<T>) => Promise<T[]>;

export function createQueryView(query: QueryRows, options?: QueryOptions): QueryView {
  return async <T>({ view, args, tail = '', rowsMax, ...viewQuery }: ViewQuery<T>) => {
    const columns = Object.entries(viewQuery.columns) as [string, Column<unknown>][];
    const expressions = columns.map(([, { sql }]) => sql).join(', ');
    const sql = `SELECT ${expressions} FROM ${toSource(view, args)} ${tail} LIMIT ${rowsMax}`;
    try {
      const rows: T[] = [];
      for await (const values of query(sql, options))
        rows.push(Object.fromEntries(columns.map(([name, { read }], index) => [name, read(values[index])])) as T);
      return rows;
    } catch (fault) {
      throw fault instanceof ClickHouseFault ? toPublicError(fault) : fault;
    }
  };
}

function toSource(view: string, args: Arguments | readonly Arguments[]): string {
  const calls = [args].flat().map((each: Arguments) => {
    const assignments = Object.entries(each).map(([name, value]) => `${name} = ${toLiteral(value)}`);
    return `${view}(${assignments.join(', ')})`;
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
    message: 'This search reads too much data. Choose a shorter time range or filter by name.',
    cause: fault,
  });
}

/** Whether an error means that a query exceeded the read limits. */
export const exceedsReadLimits = (fault: unknown): boolean =>
  fault instanceof PublicError && fault.cause instanceof ClickHouseFault && LIMIT_CODES.includes(fault.cause.code);

/** After this time, a search returns the rows that it has found so far. */
export const SEARCH_MAX_MS = 4_000;

interface ResultPage<L, P> {
  readonly lines: readonly L[];
  readonly next: P | null;
}

interface PagesOptions<P> {
  readonly after?: P | undefined;
  readonly linesMax: number;
  /** Maximum number of lines per query. The first query reads only `FIRST_LINES`. */
  readonly perQuery: number;
}

/** Small, so that a download starts quickly. */
export const FIRST_LINES = 100;

/**
 * Reads a long result with one query per page.
 * @param readPage reads at most `linesMax` lines after a position, or from the start if the position is undefined
 * @returns the position at which the result was truncated; null if the result is complete
 */
export async function* readPages<L, P>(
  readPage: (linesMax: number, after: P | undefined) => Promise<ResultPage<L, P>>,
  { after: first, linesMax, perQuery }: PagesOptions<P>,
): AsyncGenerator<readonly L[], P | null> {
  let after = first;
  let batchMax = Math.min(FIRST_LINES, perQuery);
  for (let remaining = linesMax; remaining > 0; batchMax = perQuery) {
    const { lines, next } = await readPage(Math.min(remaining, batchMax), after);
    remaining -= lines.length;
    yield lines;
    if (next === null) return null;
    after = next;
  }
  return after ?? null;
}

/** If the page is full, more lines may exist after its last line. */
export function toPage<L>(lines: readonly L[], linesMax: number): ResultPage<L, L> {
  return { lines, next: lines.length < linesMax ? null : (lines.at(-1) ?? null) };
}

/** Whether a viewer may see raw ids. Every query that can return ids requires this parameter. */
export type IdAccess = 'raw ids' | 'masked ids';

const SHOWN_CHARACTERS = 2;

/** Shortens an id, so that rows can be compared without identifying the person. */
export function maskId(id: string): string {
  return id === '' ? '' : `${[...id].slice(0, SHOWN_CHARACTERS).join('')}…`;
}
