import { PublicError } from '@playline/errors';
import { ClickHouseFault, type QueryOptions, type QueryRows, quoteText } from '@playline/stores';

/** An argument of a view: text, a whole number, or a list of texts. */
export type Argument = string | number | readonly string[];

type Arguments = Readonly<Record<string, Argument>>;

/** What is asked of one view. */
export interface ViewQuery<T> {
  readonly view: string;
  /** Of several lists, the view is read once with each. */
  readonly args: Arguments | readonly Arguments[];
  /** Expressions over the view's columns, in the order in which `toRow` gets their values. */
  readonly columns: readonly string[];
  /** `WHERE` or `ORDER BY` and what follows; what comes from outside stands in it as a literal (`quoteText`). */
  readonly tail?: string;
  /** Rows at most. */
  readonly rowsMax: number;
  readonly toRow: (values: readonly unknown[]) => T;
}

function toLiteral(value: Argument): string {
  if (typeof value === 'number') return String(Math.trunc(value));
  return typeof value === 'string' ? quoteText(value) : `[${value.map(quoteText).join(',')}]`;
}

/** Epoch milliseconds of a column with milliseconds. */
export const msOf = (column: string): string => `toUnixTimestamp64Milli(${column})`;

/** Time, rows, bytes, memory and size of the answer: what the account of the portal is bound by. */
const LIMIT_CODES: readonly string[] = ['158', '159', '160', '241', '307', '396'];

/** The quota of the project is used up (users.xml). */
const QUOTA_EXCEEDED = '201';
/** Its interval. */
const QUOTA_S = 10;

function toPublic(fault: ClickHouseFault): Error {
  if (fault.code === QUOTA_EXCEEDED)
    return new PublicError('TOO_MANY_REQUESTS_ERROR', {
      message: `The pages of your project have read as much as they may. Try again in ${QUOTA_S} seconds.`,
      retryAfterS: QUOTA_S,
      cause: fault,
    });
  if (!LIMIT_CODES.includes(fault.code)) return fault;
  return new PublicError('VALIDATION_ERROR', {
    message: 'That is more than a page may read. Choose a shorter span, or narrow it by a name.',
    cause: fault,
  });
}

/** Whether a question was refused as more than a page may read. */
export const exceedsReadLimits = (fault: unknown): boolean =>
  fault instanceof PublicError && fault.cause instanceof ClickHouseFault && LIMIT_CODES.includes(fault.cause.code);

function toSource(view: string, args: ViewQuery<unknown>['args']): string {
  const calls = (isOne(args) ? [args] : args).map((each) => {
    const given = Object.entries(each).map(([name, value]) => `${name} = ${toLiteral(value)}`);
    return `${view}(${given.join(', ')})`;
  });
  if (calls.length === 1) return calls.join('');
  return `(${calls.map((call) => `SELECT * FROM ${call}`).join(' UNION ALL ')})`;
}

const isOne = (args: ViewQuery<unknown>['args']): args is Arguments => !Array.isArray(args);

/**
 * Asks a view. Every value goes into the text as a literal of its type, so none of it is read as SQL.
 * @throws PublicError VALIDATION_ERROR when it is more than a page may read; else what the store throws
 */
export async function queryView<T>(query: QueryRows, question: ViewQuery<T>, options?: QueryOptions): Promise<T[]> {
  const { view, args, columns, tail = '', rowsMax, toRow } = question;
  const sql = `SELECT ${columns.join(', ')} FROM ${toSource(view, args)} ${tail} LIMIT ${rowsMax}`;
  try {
    const rows: T[] = [];
    for await (const values of query(sql, options)) rows.push(toRow(values));
    return rows;
  } catch (fault) {
    throw fault instanceof ClickHouseFault ? toPublic(fault) : fault;
  }
}

/** A search for one page that has found too little by then says how far it came. */
export const SEARCH_MAX_MS = 4_000;

/** One page of a long answer. */
interface AnswerPage<L, P> {
  readonly lines: readonly L[];
  /** Where the next page begins; null when there is none. */
  readonly next: P | null;
}

/** Where a long answer begins, and how much is read of it. */
interface PagesOptions<P> {
  readonly after?: P | undefined;
  /** So many lines at most. */
  readonly linesMax: number;
  /** So many lines of one question at most. The first question asks for `FIRST_LINES`. */
  readonly perQuery: number;
}

/** As many as a page shows: the first lines of a file come as soon as a page, and the next questions are larger. */
export const FIRST_LINES = 100;

/**
 * Reads a long answer, a page of it at a time, however long it takes: each page is a question of its own.
 * @param readPage reads so many lines at most, behind a place or from the beginning
 * @returns where it ended, when there may be more
 */
export async function* readPages<L, P>(
  readPage: (linesMax: number, place: P | undefined) => Promise<AnswerPage<L, P>>,
  { after: first, linesMax, perQuery: perQuestion }: PagesOptions<P>,
): AsyncGenerator<readonly L[], P | null> {
  let place = first;
  let most = Math.min(FIRST_LINES, perQuestion);
  for (let left = linesMax; left > 0; most = perQuestion) {
    const { lines, next } = await readPage(Math.min(left, most), place);
    left -= lines.length;
    yield lines;
    if (next === null) return null;
    place = next;
  }
  return place ?? null;
}

/** The page of a question that says nothing of the next one: when it is full, that begins behind its last line. */
export function toPage<L>(lines: readonly L[], linesMax: number): AnswerPage<L, L> {
  return { lines, next: lines.length < linesMax ? null : (lines.at(-1) ?? null) };
}

/** Whether somebody may see ids as clients sent them; it is asked with every read that could tell one. */
export type IdAccess = 'raw ids' | 'masked ids';

const SHOWN_CHARACTERS = 2;

/** Enough of an id to compare two lines of a page, and too little to look its owner up. */
export function maskId(id: string): string {
  return id === '' ? '' : `${[...id].slice(0, SHOWN_CHARACTERS).join('')}…`;
}

/** An id as somebody may see it. */
export const idFor = (sight: IdAccess, id: string): string => (sight === 'raw ids' ? id : maskId(id));
