import { setImmediate } from 'node:timers/promises';
import type { StoreFetch, TlsOptions } from './store-fetch.ts';

/** An account of ClickHouse, and the database that its queries use. */
export interface ClickHouseAccount {
  readonly url: string;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  /** The `fetch` to use; needed for an own certificate authority. */
  readonly fetch?: StoreFetch;
  /** For clients that connect by themselves. */
  readonly tls?: TlsOptions;
  readonly onFault?: (fault: unknown) => void;
}

/** Sends one query. Rows are yielded as they are read, each as an array of its columns. Large integers are text. */
export type QueryRows = (sql: string, options?: QueryOptions) => AsyncGenerator<readonly unknown[]>;

export interface QueryOptions {
  /** Abort it when the answer is not needed any more. */
  readonly signal?: AbortSignal;
  /** What a quota with `<keyed/>` counts the query by (users.xml). */
  readonly quotaKey?: string;
}

/** Defaults of every query. */
export interface QueryLimits {
  /** A query is given up after so many milliseconds. */
  readonly deadlineMs?: number;
  /** True when the account may not change settings. Its own settings then apply, and they make large integers text. */
  readonly isBound?: boolean;
}

/** Longer than a scan of a hundred million rows on a laptop, short enough to notice a store that hangs. */
const QUERY_MAX_MS = 300_000;
/** A query may contain a list of some thousand ids; the engine's default bound is 256 KiB. */
const QUERY_BYTES_MAX = 16 * 1024 * 1024;

/** What ClickHouse answered instead of rows. */
export class ClickHouseFault extends Error {
  override readonly name = 'ClickHouseFault';
  readonly code: string;

  constructor(status: number, code: string, answer: string) {
    super(`ClickHouse answered ${status}: ${answer.slice(0, 500)}`);
    this.code = code;
  }
}

/** One statement on its way to ClickHouse. */
export interface ClickHouseRequest {
  /** The statement; with the setting `query` the data that belongs to it. */
  readonly body: string;
  /** Settings and parameters of the statement, as in the query string. */
  readonly settings?: Readonly<Record<string, string>>;
  /** After so many milliseconds the statement is given up. */
  readonly deadlineMs: number;
  /** Aborted when the answer is not needed any more. */
  readonly signal?: AbortSignal | undefined;
  /**
   * True for a statement that changes nothing. It is sent once more where its connection was closed, and may then run twice:
   * it is unknown whether ClickHouse had begun.
   */
  readonly isRead?: boolean;
}

/** Without it `fetch` asks for gzip, and ClickHouse packs every answer, which takes it five times the CPU for 20,000 rows. */
const UNCOMPRESSED = { 'accept-encoding': 'identity' };

/**
 * Sends one statement as the account, about its database.
 * @throws Error of the network, or with what ClickHouse answered
 */
export async function sendStatement(
  { url: base, user, password, database, fetch: ask = fetch, onFault }: ClickHouseAccount,
  { body, settings = {}, deadlineMs, signal, isRead = false }: ClickHouseRequest,
): Promise<Response> {
  const url = new URL(base);
  for (const [name, value] of Object.entries({ database, ...settings })) url.searchParams.set(name, value);
  const deadline = AbortSignal.timeout(deadlineMs);
  const send = () =>
    ask(url, {
      method: 'POST',
      headers: { ...UNCOMPRESSED, 'X-ClickHouse-User': user, 'X-ClickHouse-Key': password },
      body,
      signal: signal === undefined ? deadline : AbortSignal.any([signal, deadline]),
    });
  try {
    const response = await send().catch(async (fault) => {
      if (!isRead || !isOfClosedConnection(fault)) throw fault;
      // By then it is known which other connections are closed.
      await setImmediate();
      return send();
    });
    if (response.ok) return response;
    const code = response.headers.get('x-clickhouse-exception-code') ?? '';
    throw new ClickHouseFault(response.status, code, await response.text());
  } catch (fault) {
    // A caller that has left is no fault of the store.
    if (signal?.aborted !== true) onFault?.(fault);
    throw fault;
  }
}

const CLOSED = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);

/**
 * ClickHouse closes a connection after some seconds without a question. A process that stood still as long does not know it
 * yet, and sends its next question into the closed connection.
 */
function isOfClosedConnection(fault: unknown): boolean {
  const { cause } = fault as { cause?: { code?: string } };
  return CLOSED.has(cause?.code ?? '');
}

/** Settings of an account that may set them. */
const OPEN_SETTINGS = {
  max_query_size: String(QUERY_BYTES_MAX),
  output_format_json_quote_64bit_integers: '1',
};

/** @throws Error of the network, or with what ClickHouse answered */
export function createQueryRows(
  account: ClickHouseAccount,
  { deadlineMs = QUERY_MAX_MS, isBound = false }: QueryLimits = {},
): QueryRows {
  const settings = isBound ? {} : OPEN_SETTINGS;
  return async function* query(sql, { signal, quotaKey } = {}) {
    const body = `${sql} FORMAT JSONCompactEachRow`;
    const keyed = quotaKey === undefined ? settings : { ...settings, quota_key: quotaKey };
    const response = await sendStatement(account, { body, settings: keyed, deadlineMs, signal, isRead: true });
    for await (const line of readLines(response)) yield parseRow(line);
  };
}

/** All rows of a short answer. */
export async function readRows(rows: AsyncIterable<readonly unknown[]>): Promise<(readonly unknown[])[]> {
  const list: (readonly unknown[])[] = [];
  for await (const row of rows) list.push(row);
  return list;
}

function parseRow(line: string): readonly unknown[] {
  const row: unknown = JSON.parse(line);
  // A fault in the middle of an answer comes as text or as an object, not as a row.
  if (!Array.isArray(row)) throw new Error(`ClickHouse gave no row: ${line.slice(0, 500)}`);
  return row;
}

async function* readLines(response: Response): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of response.body ?? []) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line !== '') yield line;
  }
  if (rest !== '') yield rest;
}

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

/** What a source brings, in lists of `sizeMax`: as much as one call of a store should take. The last may be shorter. */
export async function* inBatches<T>(source: AsyncIterable<T>, sizeMax: number): AsyncGenerator<T[]> {
  let batch: T[] = [];
  for await (const each of source) {
    batch.push(each);
    if (batch.length < sizeMax) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
