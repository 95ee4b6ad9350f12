import { setImmediate } from 'node:timers/promises';
import type { StoreFetch, TlsOptions } from './store-fetch.ts';

export interface ClickHouseAccount {
  readonly url: string;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  readonly fetch?: StoreFetch;
  readonly tls?: TlsOptions;
  /** Called with every fault, as the client threw it. */
  readonly onFault?: (fault: unknown) => void;
}

/** Sends one query and yields its rows as arrays of columns. Large integers are text. */
export type QueryRows = (sql: string, options?: QueryOptions) => AsyncGenerator<readonly unknown[]>;

export interface QueryOptions {
  readonly signal?: AbortSignal;
  /** Key of a quota with `<keyed/>` (users.xml). */
  readonly quotaKey?: string;
}

export interface QueryLimits {
  readonly deadlineMs?: number;
  /** True when the account may not change settings; its profile then makes large integers text. */
  readonly isBound?: boolean;
}

/** Longer than a scan of a hundred million rows on a laptop. */
const QUERY_MAX_MS = 300_000;
/** For lists of some thousand ids; the default is 256 KiB. */
const QUERY_BYTES_MAX = 16 * 1024 * 1024;

export class ClickHouseFault extends Error {
  override readonly name = 'ClickHouseFault';
  readonly code: string;

  constructor(status: number, code: string, text: string) {
    super(`ClickHouse answered ${status}: ${text.slice(0, 500)}`);
    this.code = code;
  }
}

export interface ClickHouseRequest {
  /** The statement; with the setting `query`, its data. */
  readonly body: string;
  readonly settings?: Readonly<Record<string, string>>;
  readonly deadlineMs: number;
  readonly signal?: AbortSignal | undefined;
  /** True for a statement that changes nothing. It is sent again when its connection was closed, and may run twice. */
  readonly isRead?: boolean;
}

/** Compressing a response takes ClickHouse five times the CPU for 20,000 rows. */
const UNCOMPRESSED = { 'accept-encoding': 'identity' };

/** @throws Error of the network, ClickHouseFault */
export async function sendStatement(
  { url: base, user, password, database, fetch: request = fetch, onFault }: ClickHouseAccount,
  { body, settings = {}, deadlineMs, signal, isRead = false }: ClickHouseRequest,
): Promise<Response> {
  const url = new URL(base);
  for (const [name, value] of Object.entries({ database, ...settings })) url.searchParams.set(name, value);
  const deadline = AbortSignal.timeout(deadlineMs);
  const send = () =>
    request(url, {
      method: 'POST',
      headers: { ...UNCOMPRESSED, 'X-ClickHouse-User': user, 'X-ClickHouse-Key': password },
      body,
      signal: signal === undefined ? deadline : AbortSignal.any([signal, deadline]),
    });
  try {
    const response = await send().catch(async (fault) => {
      if (!isRead || !isOfClosedConnection(fault)) throw fault;
      // Other closed connections are known after this turn.
      await setImmediate();
      return send();
    });
    if (response.ok) return response;
    const code = response.headers.get('x-clickhouse-exception-code') ?? '';
    throw new ClickHouseFault(response.status, code, await response.text());
  } catch (fault) {
    // A caller that aborted is no fault of the store.
    if (signal?.aborted !== true) onFault?.(fault);
    throw fault;
  }
}

const CLOSED = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);

/** ClickHouse closes idle connections. A process that was suspended notices only when it sends the next statement. */
function isOfClosedConnection(fault: unknown): boolean {
  const { cause } = fault as { cause?: { code?: string } };
  return CLOSED.has(cause?.code ?? '');
}

const OPEN_SETTINGS = { max_query_size: String(QUERY_BYTES_MAX), output_format_json_quote_64bit_integers: '1' };

/** @throws Error of the network, ClickHouseFault */
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

export async function readRows(rows: AsyncIterable<readonly unknown[]>): Promise<(readonly unknown[])[]> {
  const list: (readonly unknown[])[] = [];
  for await (const row of rows) list.push(row);
  return list;
}

function parseRow(line: string): readonly unknown[] {
  const row: unknown = JSON.parse(line);
  // A fault within a response is text or an object.
  if (!Array.isArray(row)) throw new Error(`ClickHouse returned no row: ${line.slice(0, 500)}`);
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

/** A column of rows sent as JSON lines, and the expression that converts it. */
export interface SentColumn {
  readonly name: string;
  readonly type: string;
  readonly as?: string;
  readonly column?: string;
}

export interface RowColumn<Row> extends SentColumn {
  readonly from: (row: Row) => unknown;
}

export interface SentTable<Row> {
  readonly statement: string;
  readonly toLine: (row: Row) => string;
}

/** Bytes, sent as hexadecimal digits. */
export const bytesColumn = (name: string) => ({ name, type: 'String', as: `unhex(${name})` });
const timeColumn = (name: string, convert: string) => ({ name, type: 'Int64', as: `${convert}(${name}, 'UTC')` });
/** A time, sent in epoch milliseconds. */
export const millisColumn = (name: string) => timeColumn(name, 'fromUnixTimestamp64Milli');
/** A time, sent in epoch microseconds. */
export const microsColumn = (name: string) => timeColumn(name, 'fromUnixTimestamp64Micro');

export const digitsOf = (text: string | null | undefined): string | null => text?.slice(2) ?? null;

/** The insert statement of JSON lines, which are sent in the body. @param tail a clause after the source */
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

export const quoteText = (text: string): string => `'${text.replace(/[\\']/g, '\\$&')}'`;

export const quoteBytes = (bytes: Buffer): string => `'${bytes.toString('hex').replace(/../g, '\\x$&')}'`;

/** ClickHouse compares the last eight bytes of a UUID first; in its text they begin after the third hyphen. */
const HALF_AT = 19;
const toSortable = (id: string) => id.slice(HALF_AT) + id.slice(0, HALF_AT);

/** In ClickHouse's order, for UUIDs in lower case. */
export function compareUuids(a: string, b: string): number {
  const [left, right] = [toSortable(a), toSortable(b)];
  return left < right ? -1 : left > right ? 1 : 0;
}

/** Splits a source into batches of `sizeMax`; the last may be shorter. */
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
