import { toQuerySize } from '@playline/stores/clickhouse';
import type { Bench } from './figure.ts';
import { type Measured, waitFor } from './processes.ts';

/** Sends SQL to ClickHouse over HTTP, without the cost of a client library. */
export interface Engine {
  readonly port: number;
  /** @returns the result as text, without its last line break */
  ask(sql: string): Promise<string>;
  read(sql: string): Promise<Buffer>;
  insert(sql: string, body: Buffer): Promise<void>;
  /** Runs a query, and reads its cost from ClickHouse's query log. */
  measure(sql: string): Promise<Asked>;
}

/** A result and its cost. */
export interface Asked {
  /** Without its last line break. */
  readonly text: string;
  /** Number of lines of the result. */
  readonly rows: number;
  readonly readRows: number;
  readonly readBytes: number;
  /** Peak memory of the query. */
  readonly memoryBytes: number;
  readonly ms: number;
  /** Its id in the query log. */
  readonly queryId: string;
}

/** Sends SQL about the database of a bench. */
export function createEngine({ stores, database }: Pick<Bench, 'stores' | 'database'>): Engine {
  const { url, user, password } = stores.clickhouse;
  const headers = { 'x-clickhouse-user': user, 'x-clickhouse-key': password };
  const send = async (parameters: Record<string, string>, body: string | Buffer) => {
    const target = `${url}/?${new URLSearchParams({ database, ...parameters })}`;
    const answer = await fetch(target, {
      method: 'POST',
      headers,
      body: typeof body === 'string' ? body : new Uint8Array(body),
    });
    if (!answer.ok) throw new Error(`ClickHouse: ${(await answer.text()).slice(0, 500)}`);
    return answer;
  };
  return {
    port: Number(new URL(url).port),
    ask: async (sql) => (await (await send({}, sql)).text()).trimEnd(),
    read: async (sql) => Buffer.from(await (await send({}, sql)).arrayBuffer()),
    measure: async (sql) => {
      // A query may name every row of a block, as the writer's queries do.
      const answer = await send({ wait_end_of_query: '1', max_query_size: toQuerySize(sql) }, sql);
      const text = (await answer.text()).trimEnd();
      const summary = JSON.parse(answer.headers.get('x-clickhouse-summary') ?? '{}') as Record<string, string>;
      const rows = text === '' ? 0 : text.split('\n').length;
      return {
        text,
        rows,
        readRows: Number(summary.read_rows),
        readBytes: Number(summary.read_bytes),
        memoryBytes: Number(summary.memory_usage),
        ms: Number(summary.elapsed_ns) / 1e6,
        queryId: answer.headers.get('x-clickhouse-query-id') ?? '',
      };
    },
    insert: async (sql, body) => void (await (await send({ query: sql, async_insert: '0' }, body)).text()),
  };
}

/** Merging some hundred thousand rows takes seconds. */
const MERGES_MAX_MS = 120_000;
/** Number of checks in a row that must find no merge, because there are short pauses between merges. */
const LOOKS_WITHOUT_MERGE = 5;

/** Waits until ClickHouse has finished all merges of a database. */
export async function waitForMerges(engine: Engine, database: string, maxMs = MERGES_MAX_MS): Promise<void> {
  let idle = 0;
  const look = async () => {
    const merges = await engine.ask(`SELECT count() FROM system.merges WHERE database = '${database}'`);
    idle = merges === '0' ? idle + 1 : 0;
    return idle >= LOOKS_WITHOUT_MERGE;
  };
  await waitFor('merges have ended', look, { maxMs });
}

/** Thirty times the usual duration on a small machine. */
const VISIBLE_MAX_MS = 120_000;

/** Waits until a table has this many rows from the log. */
export async function waitForRows(
  engine: Engine,
  { table, rows, measured }: { table: string; rows: number; measured?: Measured },
): Promise<void> {
  const visible = async () => Number(await engine.ask(`SELECT count() FROM ${table}`)) === rows;
  await waitFor(`${table} has ${rows} rows`, visible, { maxMs: VISIBLE_MAX_MS, ...(measured && { measured }) });
}
