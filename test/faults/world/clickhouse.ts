/** A direct connection to ClickHouse, so that a proxy's faults do not affect test queries. */
export interface Engine {
  url: string;
  user: string;
  password: string;
  database: string;
}

const RESPONSE_MAX_MS = 30_000;

export async function query(engine: Engine, sql: string): Promise<string> {
  const url = new URL(engine.url);
  url.searchParams.set('database', engine.database);
  const headers = { 'x-clickhouse-user': engine.user, 'x-clickhouse-key': engine.password, connection: 'close' };
  const signal = AbortSignal.timeout(RESPONSE_MAX_MS);
  const response = await fetch(url, { method: 'POST', headers, body: sql, signal });
  const text = await response.text();
  if (!response.ok) throw new Error(text.trim());
  return text;
}

export async function rowsOf(engine: Engine, sql: string): Promise<string[][]> {
  const text = await query(engine, `${sql} FORMAT TSV`);
  return text === ''
    ? []
    : text
        .replace(/\n$/, '')
        .split('\n')
        .map((line) => line.split('\t'));
}
