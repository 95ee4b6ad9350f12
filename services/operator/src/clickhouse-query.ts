/** An account of ClickHouse and the database that its questions are about. */
export interface ClickHouseAccount {
  readonly url: string;
  readonly user: string;
  readonly password: string;
  readonly database: string;
}

/** Asks one question; rows come as they are read, each an array of its columns. Large integers come as text. */
export type QueryRows = (sql: string) => AsyncGenerator<readonly unknown[]>;

/** Longer than a scan of a hundred million rows takes on a laptop, short enough to notice a store that hangs. */
const QUERY_MAX_MS = 300_000;
/** Lists of up to some thousand ids are part of a question; the engine's own bound is 256 KiB. */
const QUERY_BYTES_MAX = 16 * 1024 * 1024;

/** @throws Error of the network, or with what ClickHouse answered */
export function createQueryRows({ url: base, user, password, database }: ClickHouseAccount): QueryRows {
  return async function* query(sql) {
    const url = new URL(base);
    url.searchParams.set('database', database);
    url.searchParams.set('max_query_size', String(QUERY_BYTES_MAX));
    url.searchParams.set('output_format_json_quote_64bit_integers', '1');
    const headers = { 'X-ClickHouse-User': user, 'X-ClickHouse-Key': password };
    const body = `${sql} FORMAT JSONCompactEachRow`;
    const response = await fetch(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(QUERY_MAX_MS) });
    if (!response.ok)
      throw new Error(`ClickHouse answered ${response.status}: ${(await response.text()).slice(0, 500)}`);
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
