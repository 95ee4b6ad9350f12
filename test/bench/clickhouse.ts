import { setTimeout as delay } from 'node:timers/promises';
import { INSERT_SETTINGS } from '@playline/events/clickhouse';
import { blockWriterSettings } from '@playline/runtime';
import { toQuerySize } from '@playline/stores/clickhouse';
import type { Bench, Range } from './figure.ts';
import { type Measured, POLL_MS, pidListeningOn, waitFor, watchCpu } from './processes.ts';

/** Sends SQL to the bench's database over HTTP, without the overhead of a client library. */
export type Engine = ReturnType<typeof createEngine>;

export type QueryResult = Awaited<ReturnType<Engine['measure']>>;

export function createEngine({ stores, database }: Pick<Bench, 'stores' | 'database'>) {
  const { url, user, password } = stores.clickhouse;
  const headers = { 'x-clickhouse-user': user, 'x-clickhouse-key': password };
  const send = async (parameters: Record<string, string>, statement: string | Buffer) => {
    const target = `${url}/?${new URLSearchParams({ database, ...parameters })}`;
    const body = typeof statement === 'string' ? statement : new Uint8Array(statement);
    const response = await fetch(target, { method: 'POST', headers, body });
    if (!response.ok) throw new Error(`ClickHouse: ${(await response.text()).slice(0, 500)}`);
    return response;
  };
  /** @returns the result as text, without the trailing line break */
  const query = async (sql: string) => (await (await send({}, sql)).text()).trimEnd();
  return {
    port: Number(new URL(url).port),
    query,
    /** @returns the fields of each row in a TSV result */
    queryRows: async (sql: string) => {
      const text = await query(sql);
      return text === '' ? [] : text.split('\n').map((line) => line.split('\t'));
    },
    /** @returns the first row as numbers */
    queryNumbers: async (sql: string) => (await query(sql)).split('\t').map(Number),
    queryNumber: async (sql: string) => Number(await query(sql)),
    queryBytes: async (sql: string) => Buffer.from(await (await send({}, sql)).arrayBuffer()),
    insert: async (sql: string, body: Buffer) => {
      await (await send({ query: sql, async_insert: '0' }, body)).text();
    },
    measure: async (sql: string) => {
      const response = await send({ wait_end_of_query: '1', max_query_size: toQuerySize(sql) }, sql);
      const text = (await response.text()).trimEnd();
      const summary = JSON.parse(response.headers.get('x-clickhouse-summary') ?? '{}') as Record<string, string>;
      return {
        text,
        rows: text === '' ? 0 : text.split('\n').length,
        readRows: Number(summary.read_rows),
        readBytes: Number(summary.read_bytes),
        memoryBytes: Number(summary.memory_usage),
        ms: Number(summary.elapsed_ns) / 1e6,
        queryId: response.headers.get('x-clickhouse-query-id') ?? '',
      };
    },
  };
}

/**
 * Reads the columns of a table that have no default expression.
 * @returns the column names, and the unquoted structure argument of `input()` and `generateRandom()`
 */
export async function readColumns(engine: Engine, table: string): Promise<{ names: string; structure: string }> {
  const columns = await engine.queryRows(
    `SELECT name, type FROM system.columns WHERE database = currentDatabase() AND table = '${table}'
     AND default_kind = '' ORDER BY position FORMAT TSVRaw`,
  );
  // Like the writer, sends LowCardinality columns with their plain type, which is four times cheaper.
  const plain = (type = '') => type.replace(/LowCardinality\(([A-Za-z]+)\)/, '$1').replaceAll("'", "\\'");
  const structure = columns.map(([name, type]) => `${name} ${plain(type)}`).join(', ');
  return { names: columns.map(([name]) => name).join(', '), structure };
}

/** The event writer's settings, as they appear in a statement. */
export const WRITER_SETTINGS = Object.entries(INSERT_SETTINGS)
  .map(([name, value]) => `${name} = '${value}'`)
  .join(', ');

/** The rows of a full block of the event writer. */
export const BLOCK_ROWS: number = blockWriterSettings.BLOCK_ROWS_MAX.parse(undefined);

export async function readBlocks(engine: Engine, names: string, range: Range) {
  const blocks: Buffer[] = [];
  for (let offset = range.first; offset < range.first + range.count; offset += BLOCK_ROWS)
    blocks.push(
      await engine.queryBytes(`SELECT ${names} FROM events ORDER BY kafka_partition, kafka_offset
        LIMIT ${BLOCK_ROWS} OFFSET ${offset} FORMAT RowBinary`),
    );
  return blocks;
}

/** Consecutive polls that must find no merge, because one merge may start shortly after another. */
const POLLS_WITHOUT_MERGE = 5;

export async function waitForMerges(engine: Engine, database: string, maxMs = 120_000): Promise<void> {
  let idle = 0;
  const isIdle = async () => {
    const merges = await engine.queryNumber(`SELECT count() FROM system.merges WHERE database = '${database}'`);
    idle = merges === 0 ? idle + 1 : 0;
    return idle >= POLLS_WITHOUT_MERGE;
  };
  await waitFor('all merges end', isIdle, { maxMs });
}

export async function waitForRows(
  engine: Engine,
  { table, rows, measured }: { table: string; rows: number; measured?: Measured | undefined },
): Promise<void> {
  const isVisible = async () => (await engine.queryNumber(`SELECT count() FROM ${table}`)) === rows;
  await waitFor(`${table} has ${rows} rows`, isVisible, { maxMs: 120_000, measured });
}

const IDLE_MS = 3_000;

// Measures ClickHouse's CPU seconds, minus the CPU time that it uses while only the row count is polled.
export async function watchEngineCpu(engine: Engine, table: string): Promise<() => number> {
  const pid = pidListeningOn(engine.port);
  const idleStartMs = performance.now();
  const idle = watchCpu(pid);
  while (performance.now() - idleStartMs < IDLE_MS) {
    await engine.query(`SELECT count() FROM ${table}`);
    await delay(POLL_MS);
  }
  const perMs = idle() / (performance.now() - idleStartMs);
  const startMs = performance.now();
  const spent = watchCpu(pid);
  return () => spent() - perMs * (performance.now() - startMs);
}
