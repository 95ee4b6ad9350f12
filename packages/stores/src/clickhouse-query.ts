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
const AS_IT_IS = { 'accept-encoding': 'identity' };

/**
 * Sends one statement as the account, about its database.
 * @throws Error of the network, or with what ClickHouse answered
 */
export async function askClickHouse(
  { url: base, user, password, database, fetch: ask = fetch, onFault }: ClickHouseAccount,
  { body, settings = {}, deadlineMs, signal, isRead = false }: ClickHouseRequest,
): Promise<Response> {
  const url = new URL(base);
  for (const [name, value] of Object.entries({ database, ...settings })) url.searchParams.set(name, value);
  const deadline = AbortSignal.timeout(deadlineMs);
  const send = () =>
    ask(url, {
      method: 'POST',
      headers: { ...AS_IT_IS, 'X-ClickHouse-User': user, 'X-ClickHouse-Key': password },
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
    const response = await askClickHouse(account, { body, settings: keyed, deadlineMs, signal, isRead: true });
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
