import { Readable } from 'node:stream';
import { type SentColumn, toLinesInsert } from '@playline/stores';
import {
  type ClickHouse,
  type ClickHouseClient,
  type ClickHouseSettings,
  type ClickHouseTarget,
  openClickHouse,
} from '@playline/stores/clickhouse';

export interface SentRows {
  /** Rows, or rows as pieces of JSON, which are sent one after the other and never held as one text. */
  readonly rows: readonly (object | Iterable<string>)[];
  /** A condition on the table's own values. Rows that do not meet it are not inserted. */
  readonly where?: string;
}

/** The few kinds of call that erasures make; every fault of one is a `StoreFault`. */
export interface Connection extends Pick<ClickHouse, 'read' | 'ready' | 'close'> {
  /** @param signal ends the query at once and frees its connection */
  stream<T>(query: string, options?: { params?: Record<string, unknown>; signal?: AbortSignal }): AsyncIterable<T>;
  run(statement: string, settings?: ClickHouseSettings): Promise<void>;
  insert(table: string, columns: readonly SentColumn[], sent: SentRows): Promise<void>;
}

/** Counting a large batch reads the keys of a whole table: minutes for a billion rows. Anything longer is a fault. */
const EXECUTION_MAX_S = 300;
/** Erasures run one after the other. Beside them there are a stream of fences and a check of readiness. */
const CONNECTIONS_MAX = 4;
/**
 * An insert is acknowledged only when it is written. A fault after the first bytes of an answer does not look like success.
 */
export const INSERTING: ClickHouseSettings = {
  async_insert: 0,
  wait_end_of_query: 1,
  max_execution_time: EXECUTION_MAX_S,
};
const READING: ClickHouseSettings = {
  max_execution_time: EXECUTION_MAX_S,
  // Counts and times are smaller than what a JSON number holds exactly.
  output_format_json_quote_64bit_integers: 0,
  // As `read` of the store.
  use_query_cache: 0,
};

/** Connects with the first call. */
export function openConnection(target: ClickHouseTarget): Connection {
  const limits = { executionMaxS: EXECUTION_MAX_S, connectionsMax: CONNECTIONS_MAX };
  const { client, call, read, ready, close } = openClickHouse(target, limits);
  return {
    read,
    stream: (query, options = {}) => streamRows(client, { query, ...options, call }),
    run: (query, clickhouse_settings = {}) =>
      call(async () => void (await client.command({ query, clickhouse_settings }))),
    insert: (table, columns, sent) => call(() => insertRows(client, table, { columns, ...sent })),
    ready,
    close,
  };
}

interface StreamedQuery {
  readonly query: string;
  readonly params?: Record<string, unknown>;
  readonly signal?: AbortSignal;
  readonly call: <T>(work: () => Promise<T>) => Promise<T>;
}

async function* streamRows<T>(client: ClickHouseClient, question: StreamedQuery): AsyncGenerator<T> {
  const { query, params: query_params = {}, signal: abort_signal, call } = question;
  const settings = { clickhouse_settings: READING, query_params, ...(abort_signal && { abort_signal }) };
  const result = await call(() => client.query({ query, format: 'JSONEachRow', ...settings }));
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
}

function* toPieces(rows: SentRows['rows']): Generator<string> {
  for (const row of rows) {
    if (Symbol.iterator in row) yield* row;
    else yield JSON.stringify(row);
    yield '\n';
  }
}

/** The rows are sent in the body, so that no log of statements contains a key. */
async function insertRows(
  client: ClickHouseClient,
  table: string,
  { columns, rows, where }: SentRows & { columns: readonly SentColumn[] },
): Promise<void> {
  if (rows.length === 0) return;
  const { stream } = await client.exec({
    query: toLinesInsert(table, columns, where === undefined ? '' : `WHERE ${where}`),
    values: Readable.from(toPieces(rows)),
    clickhouse_settings: INSERTING,
  });
  for await (const _ of stream);
}
