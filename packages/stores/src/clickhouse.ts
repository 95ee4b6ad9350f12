import { Agent } from 'node:https';
import { Readable } from 'node:stream';
import type { ConnectionOptions } from 'node:tls';
import { type ClickHouseClient, ClickHouseLogLevel, type ClickHouseSettings, createClient } from '@clickhouse/client';
import { createConnectGate } from './connection-faults.ts';
import { toStoreFault } from './store-fault.ts';

export { type ClickHouseClient, type ClickHouseSettings, parseError } from '@clickhouse/client';

/** A database of ClickHouse and the account that uses it, as every adapter takes them. */
export interface ClickHouseTarget {
  readonly url: string;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  /** For `https://`: what is trusted, who we are, and the name that the certificate must bear. */
  readonly tls?: Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'servername'>;
  /** Called with every fault of a call as the client threw it. */
  readonly onFault?: (fault: unknown) => void;
}

/** How patient a client of ClickHouse is, and how many connections it opens. */
export interface ClickHouseLimits {
  /** Longer than any healthy call takes, so that a server that hangs gives the connection back. */
  readonly executionMaxS: number;
  readonly connectionsMax: number;
}

/**
 * Limits of a writer of blocks. An insert of a block never takes that long while the server is healthy, and a server that
 * hangs gives the connection back by then. Each partition that writes at the same time has a connection; more would only
 * queue in the server.
 */
export const BLOCK_WRITER_LIMITS: ClickHouseLimits = { executionMaxS: 60, connectionsMax: 16 };

/** The server's default limit of a query's text. */
const QUERY_BYTES = 262_144;

/** The setting `max_query_size` of a query: the default, and room for the lists in its text. */
export const toQuerySize = (query: string): string => String(QUERY_BYTES + Buffer.byteLength(query));

/** A call of the client is given up this much later than the server gives up its statement. */
const BEHIND_EXECUTION_S = 10;

/** One account's connections. Every fault of a call is a `StoreFault`. */
export interface ClickHouse {
  /** For what the calls below do not have. Wrap each use in `call`. */
  readonly client: ClickHouseClient;
  /** Makes a call. A fault goes to `onFault` as the client threw it. @throws StoreFault */
  call<T>(work: () => Promise<T>): Promise<T>;
  /** All rows of a query. Integers are numbers: what may exceed 2^53 is selected as text. */
  read<T>(query: string, params?: Record<string, unknown>, settings?: ClickHouseSettings): Promise<T[]>;
  /** Inserts rows as one block, and only once for a token. */
  insertBlock(block: Block): Promise<void>;
  /** Whether the account can use the database. A refused login is not tried again with each call. */
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

export interface Block {
  /** `INSERT … FORMAT …` */
  readonly statement: string;
  /** The rows in that format. */
  readonly body: string | Buffer;
  readonly token: string;
  readonly signal: AbortSignal;
  readonly settings?: ClickHouseSettings;
}

/** Connects with the first call. */
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
          // A cached answer would count rows that are gone, or miss rows that are there.
          use_query_cache: 0,
          ...settings,
        };
        return (await client.query({ query, query_params, format: 'JSONEachRow', clickhouse_settings })).json();
      }),
    insertBlock: ({ statement, body, token, signal, settings }) =>
      call(async () => {
        const { stream } = await client.exec({
          query: statement,
          // Not in object mode, so that the rows are sent as one chunk.
          values: Readable.from([body], { objectMode: false }),
          abort_signal: signal,
          clickhouse_settings: { ...oneBlockSettings(token, limits.executionMaxS), ...settings },
        });
        // The connection is not free until the answer has been read to its end.
        for await (const _ of stream);
      }),
    ready: async () => {
      if (gate.refusalOf(url) !== null) return false;
      // A query of the account. The server's own address for pings answers to anybody.
      const answer = await client.ping({ select: true });
      gate.settled(url, answer.success ? null : answer.error);
      if (!answer.success) onFault?.(answer.error);
      return answer.success;
    },
    close: () => client.close(),
  };
}

/** The vendor's client; its faults are thrown as they are. @param settings of every statement */
export function openClickHouseClient(
  target: ClickHouseTarget,
  limits: ClickHouseLimits,
  settings: ClickHouseSettings = {},
): ClickHouseClient {
  return createClient({ ...toClientOptions(target, limits), clickhouse_settings: settings });
}

/** Options of the vendor's client. Its connections are kept: an insert whose answer was lost is repeated under its token. */
export function toClientOptions(target: ClickHouseTarget, { executionMaxS, connectionsMax }: ClickHouseLimits) {
  const { url, user: username, password, database, tls } = target;
  return {
    url,
    username,
    password,
    database,
    request_timeout: (executionMaxS + BEHIND_EXECUTION_S) * 1_000,
    max_open_connections: connectionsMax,
    // The client's own option for TLS has no server name, and takes a client's certificate for a login.
    ...(tls !== undefined && { http_agent: new Agent({ ...tls, keepAlive: true, maxSockets: connectionsMax }) }),
    // Faults are thrown. The client's own log lines quote data that the server could not read.
    log: { level: ClickHouseLogLevel.OFF },
  };
}

/** Most rows of one block of ClickHouse. An insert of more would be several blocks under one token. */
const BLOCK_ROWS_MAX = 1_048_449;

/**
 * Settings of an insert that ClickHouse stores as one block, whatever its size, and drops when it has seen the token.
 * @param executionMaxS the server gives the insert up after so many seconds
 */
function oneBlockSettings(token: string, executionMaxS: number) {
  return {
    async_insert: 0,
    insert_deduplicate: 1,
    insert_deduplication_token: token,
    max_insert_block_size: String(BLOCK_ROWS_MAX),
    min_insert_block_size_rows: String(BLOCK_ROWS_MAX),
    max_insert_threads: '1',
    max_execution_time: executionMaxS,
    // An exception after the first bytes of an answer would otherwise look like success.
    wait_end_of_query: 1,
  } as const;
}
