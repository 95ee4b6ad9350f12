import { setImmediate } from 'node:timers/promises';
import type { StoreFetch, TlsOptions } from './store-fetch.ts';

export interface ClickHouseAccount {
  readonly url: string;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  readonly fetch?: StoreFetch;
  readonly tls?: TlsOptions;
  /** Absent for a single server. */
  readonly cluster?: ClickHouseCluster;
  /** Called with every fault before it is thrown. */
  readonly onFault?: (fault: unknown) => void;
}

/** Nodes with one shard each (infra/clickhouse/cluster.ts). */
export interface ClickHouseCluster {
  /** Name of the shards in the configuration of ClickHouse. */
  readonly name: string;
  /** Addresses of the nodes. The first is the home, which `url` of an account is as well. */
  readonly urls: readonly string[];
}

/** Returns the account with the database that contains the rows of all nodes. */
export const overAllNodes = <A extends ClickHouseAccount>(account: A): A =>
  account.cluster === undefined ? account : { ...account, database: `${account.database}_all` };

/** Returns the account for each node, the home first. */
export const onEachNode = <A extends ClickHouseAccount>(account: A): A[] =>
  account.cluster === undefined ? [account] : account.cluster.urls.map((url) => ({ ...account, url }));

/** Selects the cluster that the tables of a database belong to. Returns no row for a single server. */
export const selectCluster = (database: string): string =>
  `SELECT extract(engine_full, 'Distributed[(]''([a-z0-9_]+)_everywhere''') AS cluster FROM system.tables
   WHERE database = '${database}_all' AND name = 'analyst_grants'`;

/** Sends a query and yields each row as an array of column values. Large integers are strings. */
export type QueryRows = (sql: string, options?: QueryOptions) => AsyncGenerator<readonly unknown[]>;

export interface QueryOptions {
  readonly signal?: AbortSignal;
  /** Key for a quota with `<keyed/>` (users.xml). */
  readonly quotaKey?: string;
}

export interface QueryLimits {
  readonly deadlineMs?: number;
  /** True if the account cannot change settings. Its settings profile then returns large integers as strings. */
  readonly isReadonly?: boolean;
}

/** Enough to scan a hundred million rows on a laptop. */
const QUERY_MAX_MS = 300_000;
/** Enough for lists of several thousand ids. The default is 256 KiB. */
const QUERY_BYTES_MAX = 16 * 1024 * 1024;

export class ClickHouseFault extends Error {
  override readonly name = 'ClickHouseFault';
  readonly code: string;
  /** Name of the code. */
  readonly type: string;

  constructor(status: number, code: string, text: string) {
    super(`ClickHouse responded ${status}: ${text.slice(0, 500)}`);
    this.code = code;
    this.type = /\(([A-Z0-9_]+)\)( \(version|\s*$)/.exec(text)?.[1] ?? '';
  }
}

export interface ClickHouseRequest {
  /** The statement, or its data if the setting `query` contains the statement. */
  readonly body: string;
  readonly settings?: Readonly<Record<string, string>>;
  readonly deadlineMs: number;
  readonly signal?: AbortSignal | undefined;
  /** True for a read-only statement, which is resent if its connection was closed, and may run twice. */
  readonly isRead?: boolean;
}

/** For 20,000 rows, compression increases ClickHouse's CPU time fivefold. */
const UNCOMPRESSED = { 'accept-encoding': 'identity' };

/** @throws a network error, or ClickHouseFault */
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
      if (!isRead || !isConnectionClosed(fault)) throw fault;
      // Waits until Node has detected other closed connections.
      await setImmediate();
      return send();
    });
    if (response.ok) return response;
    const code = response.headers.get('x-clickhouse-exception-code') ?? '';
    throw new ClickHouseFault(response.status, code, await response.text());
  } catch (fault) {
    // A call aborted by the caller is not a store fault.
    if (signal?.aborted !== true) onFault?.(fault);
    throw fault;
  }
}

const CLOSED = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);

/** ClickHouse closes idle connections. A suspended process detects this only when it sends the next statement. */
function isConnectionClosed(fault: unknown): boolean {
  const { cause } = fault as { cause?: { code?: string } };
  return CLOSED.has(cause?.code ?? '');
}

const QUERY_SETTINGS = { max_query_size: String(QUERY_BYTES_MAX), output_format_json_quote_64bit_integers: '1' };

/** @throws a network error, or ClickHouseFault */
export function createQueryRows(
  account: ClickHouseAccount,
  { deadlineMs = QUERY_MAX_MS, isReadonly = false }: QueryLimits = {},
): QueryRows {
  const settings = isReadonly ? {} : QUERY_SETTINGS;
  return async function* query(sql, { signal, quotaKey } = {}) {
    const body = `${sql} FORMAT JSONCompactEachRow`;
    const settingsWithQuota = quotaKey === undefined ? settings : { ...settings, quota_key: quotaKey };
    const response = await sendStatement(account, {
      body,
      settings: settingsWithQuota,
      deadlineMs,
      signal,
      isRead: true,
    });
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
  // An error in the middle of a response is plain text or an object.
  if (!Array.isArray(row)) throw new Error(`ClickHouse returned an invalid row: ${line.slice(0, 500)}`);
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

/** A column of rows that are sent as JSON lines, with the expression that converts its value. */
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

/** A column for bytes, sent as hexadecimal digits. */
export const bytesColumn = (name: string) => ({ name, type: 'String', as: `unhex(${name})` });
const timeColumn = (name: string, convert: string) => ({ name, type: 'Int64', as: `${convert}(${name}, 'UTC')` });
/** A column for a time, sent in epoch milliseconds. */
export const millisColumn = (name: string) => timeColumn(name, 'fromUnixTimestamp64Milli');
/** A column for a time, sent in epoch microseconds. */
export const microsColumn = (name: string) => timeColumn(name, 'fromUnixTimestamp64Micro');

export const digitsOf = (text: string | null | undefined): string | null => text?.slice(2) ?? null;

/** Creates an INSERT statement for JSON lines in the request body. @param tail a clause after the source */
export function toLinesInsert(table: string, columns: readonly SentColumn[], tail = ''): string {
  const names = columns.map(({ name, column = name }) => column).join(', ');
  const values = columns.map(({ name, as = name, column = name }) => `${as} AS ${column}`).join(', ');
  const structure = columns.map(({ name, type }) => `${name} ${type}`).join(', ');
  return `INSERT INTO ${table} (${names}) SELECT ${values} FROM input('${structure}') ${tail} FORMAT JSONEachRow`;
}

/** @param tail a clause that produces several rows per line */
export function createSentTable<Row>(table: string, columns: readonly RowColumn<Row>[], tail?: string): SentTable<Row> {
  return {
    statement: toLinesInsert(table, columns, tail),
    toLine: (row) => JSON.stringify(Object.fromEntries(columns.map(({ name, from }) => [name, from(row)]))),
  };
}

export const quoteText = (text: string): string => `'${text.replace(/[\\']/g, '\\$&')}'`;

export const quoteBytes = (bytes: Buffer): string => `'${bytes.toString('hex').replace(/../g, '\\x$&')}'`;

/** ClickHouse compares the last eight bytes of a UUID first. In the string they start after the third hyphen. */
const SECOND_HALF_AT = 19;
const toSortable = (id: string) => id.slice(SECOND_HALF_AT) + id.slice(0, SECOND_HALF_AT);

/** Compares lower-case UUIDs in ClickHouse's order. */
export function compareUuids(a: string, b: string): number {
  const [left, right] = [toSortable(a), toSortable(b)];
  return left < right ? -1 : left > right ? 1 : 0;
}

/** Splits a source into batches of `sizeMax` items. The last batch may be smaller. */
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
