import type { TlsOptions } from './connections.ts';
import type { StoreFetch, StoreRequest } from './store-fetch.ts';

/** An account of ClickHouse and the database that its questions are about. */
export interface ClickHouseAccount {
  readonly url: string;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  /** How it is asked: by itself without an authority of its own. */
  readonly fetch?: StoreFetch;
  /** For clients that connect by themselves. */
  readonly tls?: TlsOptions;
  readonly onFault?: (fault: unknown) => void;
}

/** Asks one question; rows come as they are read, each an array of its columns. Large integers come as text. */
export type QueryRows = (sql: string, options?: QueryOptions) => AsyncGenerator<readonly unknown[]>;

export interface QueryOptions {
  /** Aborted when nobody waits for the answer any more. */
  readonly signal?: AbortSignal;
}

/** How questions are asked by themselves. */
export interface QueryLimits {
  /** After so many milliseconds a question is given up. */
  readonly deadlineMs?: number;
  /** The account may set nothing: its own settings hold, and large integers are text by them. */
  readonly isBound?: boolean;
}

/** Longer than a scan of a hundred million rows takes on a laptop, short enough to notice a store that hangs. */
const QUERY_MAX_MS = 300_000;
/** Lists of up to some thousand ids are part of a question; the engine's own bound is 256 KiB. */
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

/** Asks one question. @throws Error of the network, or with what ClickHouse answered */
export async function askClickHouse(
  { fetch: ask = fetch, onFault }: Pick<ClickHouseAccount, 'fetch' | 'onFault'>,
  url: URL,
  request: StoreRequest,
): Promise<Response> {
  try {
    const response = await ask(url, request);
    if (response.ok) return response;
    const code = response.headers.get('x-clickhouse-exception-code') ?? '';
    throw new ClickHouseFault(response.status, code, await response.text());
  } catch (fault) {
    onFault?.(fault);
    throw fault;
  }
}

/** @throws Error of the network, or with what ClickHouse answered */
export function createQueryRows(
  account: ClickHouseAccount,
  { deadlineMs = QUERY_MAX_MS, isBound = false }: QueryLimits = {},
): QueryRows {
  const { url: base, user, password, database } = account;
  return async function* query(sql, { signal } = {}) {
    const url = new URL(base);
    url.searchParams.set('database', database);
    if (!isBound) {
      url.searchParams.set('max_query_size', String(QUERY_BYTES_MAX));
      url.searchParams.set('output_format_json_quote_64bit_integers', '1');
    }
    const deadline = AbortSignal.timeout(deadlineMs);
    const headers = { 'X-ClickHouse-User': user, 'X-ClickHouse-Key': password };
    const body = `${sql} FORMAT JSONCompactEachRow`;
    // Whoever has left is no fault of the store.
    const onFault = (fault: unknown) => {
      if (signal?.aborted !== true) account.onFault?.(fault);
    };
    const response = await askClickHouse({ ...account, onFault }, url, {
      method: 'POST',
      headers,
      body,
      signal: signal === undefined ? deadline : AbortSignal.any([signal, deadline]),
    });
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
  // A fault in the midst of an answer comes as text or as an object.
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
