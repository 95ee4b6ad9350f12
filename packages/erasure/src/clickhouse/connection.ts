/** The calls of ClickHouse that erasures make. Every failure is a `StoreFault`. */
import { Readable } from 'node:stream';
import { type SentColumn, toLinesInsert } from '@playline/stores';
import {
  type ClickHouse,
  type ClickHouseSettings,
  type ClickHouseTarget,
  openClickHouse,
} from '@playline/stores/clickhouse';

export interface SentRows {
  /** Rows, or rows as pieces of JSON, which are streamed and never joined into one text. */
  readonly rows: readonly (object | Iterable<string>)[];
  /** A condition on columns of the table. Rows that do not meet it are not inserted. */
  readonly where?: string;
}

export interface Connection extends Pick<ClickHouse, 'read' | 'ready' | 'close'> {
  /** @param signal ends the query and frees its connection */
  stream<T>(query: string, options?: { params?: Record<string, unknown>; signal?: AbortSignal }): AsyncIterable<T>;
  run(statement: string, settings?: ClickHouseSettings): Promise<void>;
  insert(table: string, columns: readonly SentColumn[], sent: SentRows): Promise<void>;
}

/** Counting a large batch reads the keys of a whole table: minutes for a billion rows. */
const EXECUTION_MAX_S = 300;
/** Erasures run one after the other, beside a stream of fences and a readiness check. */
const CONNECTIONS_MAX = 4;
/** An insert is acknowledged only when it is written, and a late fault is not reported as success. */
export const INSERTING: ClickHouseSettings = {
  async_insert: 0,
  wait_end_of_query: 1,
  max_execution_time: EXECUTION_MAX_S,
};
const READING: ClickHouseSettings = {
  max_execution_time: EXECUTION_MAX_S,
  // Counts and times fit into a JSON number.
  output_format_json_quote_64bit_integers: 0,
  use_query_cache: 0,
};

export function openConnection(target: ClickHouseTarget): Connection {
  const limits = { executionMaxS: EXECUTION_MAX_S, connectionsMax: CONNECTIONS_MAX };
  const { client, call, read, ready, close } = openClickHouse(target, limits);
  return {
    read,
    ready,
    close,
    async *stream<T>(query: string, { params = {}, signal }: Parameters<Connection['stream']>[1] = {}) {
      const options = { clickhouse_settings: READING, query_params: params, ...(signal && { abort_signal: signal }) };
      const result = await call(() => client.query({ query, format: 'JSONEachRow', ...options }));
      const blocks = result.stream<T>()[Symbol.asyncIterator]();
      try {
        for (;;) {
          const block = await call(() => blocks.next());
          if (block.done) return;
          for (const row of block.value) yield row.json() as T;
        }
      } finally {
        result.close();
      }
    },
    run: (query, clickhouse_settings = {}) =>
      call(async () => void (await client.command({ query, clickhouse_settings }))),
    // The rows are sent in the body, so that no log of statements contains a key.
    insert: (table, columns, { rows, where }) =>
      call(async () => {
        if (rows.length === 0) return;
        const { stream } = await client.exec({
          query: toLinesInsert(table, columns, where === undefined ? '' : `WHERE ${where}`),
          values: Readable.from(toPieces(rows)),
          clickhouse_settings: INSERTING,
        });
        for await (const _ of stream);
      }),
  };
}

function* toPieces(rows: SentRows['rows']): Generator<string> {
  for (const row of rows) {
    if (Symbol.iterator in row) yield* row;
    else yield JSON.stringify(row);
    yield '\n';
  }
}
