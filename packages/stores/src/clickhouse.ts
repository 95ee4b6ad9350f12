import { Agent } from 'node:https';
import { Readable } from 'node:stream';
import { type ClickHouseClient, ClickHouseLogLevel, type ClickHouseSettings, createClient } from '@clickhouse/client';
import type { ClickHouseAccount } from './clickhouse-query.ts';
import { createConnectGate } from './connection-faults.ts';
import { toStoreFault } from './store-fault.ts';

export { type ClickHouseClient, type ClickHouseSettings, parseError } from '@clickhouse/client';

export type ClickHouseTarget = Omit<ClickHouseAccount, 'fetch'>;

export interface ClickHouseLimits {
  readonly executionMaxS: number;
  readonly connectionsMax: number;
}

/** Limits for block writers. Each partition being written uses one connection; more connections would only queue. */
export const BLOCK_WRITER_LIMITS: ClickHouseLimits = { executionMaxS: 60, connectionsMax: 16 };

const QUERY_BYTES = 262_144;

/** Returns the `max_query_size` for a query that contains lists. */
export const toQuerySize = (query: string): string => String(QUERY_BYTES + Buffer.byteLength(query));

/** Seconds after the server's statement timeout at which a call times out. */
const RESPONSE_MARGIN_S = 10;

export interface ClickHouse {
  /** The ClickHouse client, for other calls. Wrap each use in `call`. */
  readonly client: ClickHouseClient;
  /** Runs a call. @throws StoreFault; `onFault` receives the original fault */
  call<T>(work: () => Promise<T>): Promise<T>;
  /** Returns all rows of a query. Select numbers above 2^53 as strings. */
  read<T>(query: string, params?: Record<string, unknown>, settings?: ClickHouseSettings): Promise<T[]>;
  insertBlock(block: Block): Promise<void>;
  /** Returns true if the account can use the database. A rejected login is retried after a delay. */
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

export interface Block {
  readonly statement: string;
  readonly body: string | Buffer;
  readonly token: string;
  readonly signal: AbortSignal;
  readonly settings?: ClickHouseSettings;
}

export function openClickHouse(target: ClickHouseTarget, limits: ClickHouseLimits): ClickHouse {
  const { url, onFault } = target;
  const gate = createConnectGate('ClickHouse');
  const client = openClickHouseClient(target, limits);
  const call: ClickHouse['call'] = async (work) => {
    try {
      return await work();
    } catch (fault) {
      onFault?.(fault);
      throw toStoreFault(fault);
    }
  };
  return {
    client,
    call,
    read: (query, query_params = {}, settings = {}) =>
      call(async () => {
        const clickhouse_settings: ClickHouseSettings = {
          max_execution_time: limits.executionMaxS,
          max_query_size: toQuerySize(query),
          output_format_json_quote_64bit_integers: 0,
          // Cached results may miss new rows or contain deleted rows.
          use_query_cache: 0,
          ...settings,
        };
        return (await client.query({ query, query_params, format: 'JSONEachRow', clickhouse_settings })).json();
      }),
    insertBlock: ({ statement, body, token, signal, settings }) =>
      call(async () => {
        const { stream } = await client.exec({
          query: statement,
          // Without object mode, the body is sent as one chunk.
          values: Readable.from([body], { objectMode: false }),
          abort_signal: signal,
          clickhouse_settings: { ...oneBlockSettings(token, limits.executionMaxS), ...settings },
        });
        // Reading the whole response releases the connection.
        for await (const _ of stream);
      }),
    ready: async () => {
      if (gate.refusalOf(url) !== null) return false;
      // A query instead of the server's ping, which requires no login.
      const result = await client.ping({ select: true });
      gate.settled(url, result.success ? null : result.error);
      if (!result.success) onFault?.(result.error);
      return result.success;
    },
    close: () => client.close(),
  };
}

/** Opens the ClickHouse client, which throws the original faults. @param settings settings for every statement */
export function openClickHouseClient(
  target: ClickHouseTarget,
  limits: ClickHouseLimits,
  settings: ClickHouseSettings = {},
): ClickHouseClient {
  return createClient({ ...toClientOptions(target, limits), clickhouse_settings: settings });
}

/** Connections are kept alive. An insert without a response is retried with the same token. */
export function toClientOptions(target: ClickHouseTarget, { executionMaxS, connectionsMax }: ClickHouseLimits) {
  const { url, user: username, password, database, tls } = target;
  return {
    url,
    username,
    password,
    database,
    request_timeout: (executionMaxS + RESPONSE_MARGIN_S) * 1_000,
    max_open_connections: connectionsMax,
    // The client's TLS option has no server name and treats a client certificate as the login.
    ...(tls !== undefined && { http_agent: new Agent({ ...tls, keepAlive: true, maxSockets: connectionsMax }) }),
    // The client's log lines quote data that the server could not parse.
    log: { level: ClickHouseLogLevel.OFF },
  };
}

/** ClickHouse would split a larger insert into several blocks with the same token. */
const BLOCK_ROWS_MAX = 1_048_449;

/** Settings for an insert that is stored as one block, or dropped if its token is already stored. */
function oneBlockSettings(token: string, executionMaxS: number) {
  return {
    async_insert: 0,
    insert_deduplicate: 1,
    insert_deduplication_token: token,
    max_insert_block_size: String(BLOCK_ROWS_MAX),
    min_insert_block_size_rows: String(BLOCK_ROWS_MAX),
    max_insert_threads: '1',
    max_execution_time: executionMaxS,
    // Otherwise an exception after the first response bytes would look like success.
    wait_end_of_query: 1,
  } as const;
}
