/** A ClickHouse connection for erasures. Every failure is a `StoreFault`. */
import { Readable } from 'node:stream';
import { type SentColumn, toLinesInsert } from '@playline/stores';
import {
  type ClickHouse,
  type ClickHouseSettings,
  type ClickHouseTarget,
  openClickHouse,
} from '@playline/stores/clickhouse';

export interface SentRows {
  /** Rows as objects, or as JSON chunks to stream. */
  readonly rows: readonly (object | Iterable<string>)[];
  /** A SQL condition. Only rows that meet the condition are inserted. */
  readonly where?: string;
}

export interface Connection extends Pick<ClickHouse, 'read' | 'ready' | 'close'> {
  /** @param signal cancels the query and frees its connection */
  stream<T>(query: string, options?: { params?: Record<string, unknown>; signal?: AbortSignal }): AsyncIterable<T>;
  run(statement: string, settings?: ClickHouseSettings): Promise<void>;
  insert(table: string, columns: readonly SentColumn[], sent: SentRows): Promise<void>;
}

/** Counting a large batch reads all keys in a table, which takes minutes for a billion rows. */
const EXECUTION_MAX_S = 300;
/** Erasures run one at a time, concurrently with a stream of fences and a readiness check. */
const CONNECTIONS_MAX = 4;
/** ClickHouse acknowledges an insert only after writing the rows, so no error is reported as success. */
export const INSERT_SETTINGS: ClickHouseSettings = {
  async_insert: 0,
  wait_end_of_query: 1,
  max_execution_time: EXECUTION_MAX_S,
};
const READ_SETTINGS: ClickHouseSettings = {
  max_execution_time: EXECUTION_MAX_S,
  // All counts and timestamps fit in a JSON number.
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
    async *stream<T>(query: string, { params: query_params = {}, signal }: Parameters<Connection['stream']>[1] = {}) {
      const options = { clickhouse_settings: READ_SETTINGS, query_params, ...(signal && { abort_signal: signal }) };
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
    // Rows are sent in the request body, so that no query log contains a key.
    insert: (table, columns, { rows, where }) =>
      call(async () => {
        if (rows.length === 0) return;
        const { stream } = await client.exec({
          query: toLinesInsert(table, columns, where === undefined ? '' : `WHERE ${where}`),
          values: Readable.from(toChunks(rows)),
          clickhouse_settings: INSERT_SETTINGS,
        });
        for await (const _ of stream);
      }),
  };
}

function* toChunks(rows: SentRows['rows']): Generator<string> {
  for (const row of rows) {
    if (Symbol.iterator in row) yield* row;
    else yield JSON.stringify(row);
    yield '\n';
  }
}
