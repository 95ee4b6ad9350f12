import { Readable } from 'node:stream';
import { type ClickHouseClient, ClickHouseLogLevel, type ClickHouseSettings, createClient } from '@clickhouse/client';
import {
  type ClickHouseLimits,
  type ClickHouseTarget,
  createClickHouseClientSetup,
  oneBlockSettings,
  toQuerySize,
} from '@playline/errors';

/** Reads and inserts. Every fault is a `StoreFault`. */
export interface Connection {
  read<T>(query: string, options?: { params?: Record<string, unknown>; settings?: ClickHouseSettings }): Promise<T[]>;
  /** @param lines JSON texts, one per row */
  insert(statement: string, lines: readonly string[], options: InsertOptions): Promise<void>;
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

export interface InsertOptions {
  readonly token: string;
  readonly signal: AbortSignal;
}

/** Connects with the first call. */
export function openConnection(target: ClickHouseTarget, limits: ClickHouseLimits): Connection {
  const setup = createClickHouseClientSetup(target, limits);
  // Off, because the client's log lines quote data that the server could not read. Faults are thrown without it.
  const client = createClient({ ...setup.options, log: { level: ClickHouseLogLevel.OFF } });
  const { executionMaxS } = limits;
  return {
    read: (query, { params: query_params = {}, settings = {} } = {}) =>
      setup.call(async () => {
        const clickhouse_settings: ClickHouseSettings = {
          max_execution_time: executionMaxS,
          max_query_size: toQuerySize(query),
          // Microseconds are below 2^53. Larger numbers are selected as text.
          output_format_json_quote_64bit_integers: 0,
          ...settings,
        };
        return (await client.query({ query, query_params, format: 'JSONEachRow', clickhouse_settings })).json();
      }),
    insert: (statement, lines, options) =>
      setup.call(() => insertLines(client, { ...options, statement, lines, executionMaxS })),
    ready: () => setup.ready(client),
    close: () => client.close(),
  };
}

interface Insertion extends InsertOptions {
  readonly statement: string;
  readonly lines: readonly string[];
  readonly executionMaxS: number;
}

async function insertLines(client: ClickHouseClient, insertion: Insertion): Promise<void> {
  const { statement, lines, token, signal, executionMaxS } = insertion;
  const { stream } = await client.exec({
    query: statement,
    values: Readable.from([lines.join('\n')], { objectMode: false }),
    abort_signal: signal,
    clickhouse_settings: {
      ...oneBlockSettings(token, executionMaxS),
      // Copies stay until a merge; readers fold them until then. Otherwise `storedOffsets` would miss offsets of the
      // block.
      optimize_on_insert: 0,
    },
  });
  // The connection is not free until the answer has been read to its end.
  for await (const _ of stream);
}
