import { Readable } from 'node:stream';
import { type ClickHouseClient, ClickHouseLogLevel, type ClickHouseSettings, createClient } from '@clickhouse/client';
import {
  type ClickHouseLimits,
  type ClickHouseTarget,
  createClickHouseClientSetup,
  oneBlockSettings,
} from '@playline/errors';

/** The two kinds of call that are made; every fault of one is a `StoreFault`. */
export interface Connection {
  read<T>(query: string, options?: { params?: Record<string, unknown>; settings?: ClickHouseSettings }): Promise<T[]>;
  /** @param lines JSON texts, one a row */
  insert(statement: string, lines: readonly string[], options: InsertOptions): Promise<void>;
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

export interface InsertOptions {
  readonly token: string;
  readonly signal: AbortSignal;
}

/** The server's default limit; lists of ids are added to it. */
const QUERY_BYTES_MIN = 262_144;

/** Connects with the first call. */
export function openConnection(target: ClickHouseTarget, limits: ClickHouseLimits): Connection {
  const setup = createClickHouseClientSetup(target, limits);
  // Faults are thrown, and say less: the client's own lines quote what the server could not read.
  const client = createClient({ ...setup.options, log: { level: ClickHouseLogLevel.OFF } });
  const { executionMaxS } = limits;
  return {
    read: (query, { params: query_params = {}, settings = {} } = {}) =>
      setup.call(async () => {
        const clickhouse_settings: ClickHouseSettings = {
          max_execution_time: executionMaxS,
          max_query_size: String(QUERY_BYTES_MIN + Buffer.byteLength(query)),
          // Microseconds are below 2^53; what may be more is asked for as text.
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
      // Merges fold copies, and readers do so until then. Without this, some offsets of a block would be missing when
      // they are asked for.
      optimize_on_insert: 0,
    },
  });
  // The connection is not free until the answer has been read to its end.
  for await (const _ of stream);
}
