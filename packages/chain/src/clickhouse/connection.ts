import { Agent } from 'node:https';
import { Readable } from 'node:stream';
import type { ConnectionOptions } from 'node:tls';
import { type ClickHouseClient, ClickHouseLogLevel, type ClickHouseSettings, createClient } from '@clickhouse/client';
import { createConnectGate, toStoreFault } from '@playline/errors';

export interface ClickHouseTarget {
  readonly url: string;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  /** For `https://`: what is trusted, who we are, and the name that the certificate must bear. */
  readonly tls?: Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'servername'>;
  /** Told of every fault of a call as the client threw it. */
  readonly onFault?: (fault: unknown) => void;
}

export interface ConnectionLimits {
  /** Longer than any healthy call, so that a hung server gives the connection back. */
  readonly executionMaxS: number;
  readonly connectionsMax: number;
}

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

/** Rows of one block at most; an insert of more would be several blocks under one token. */
const BLOCK_ROWS_MAX = 1_048_449;
/** The server's own limit: lists of ids come on top. */
const QUERY_BYTES_MIN = 262_144;

/** Connects with the first call. */
export function openConnection(target: ClickHouseTarget, limits: ConnectionLimits): Connection {
  const { executionMaxS: max_execution_time, connectionsMax } = limits;
  const client = createClient({
    url: target.url,
    username: target.user,
    password: target.password,
    database: target.database,
    request_timeout: (max_execution_time + 10) * 1_000,
    max_open_connections: connectionsMax,
    // The client's own option for TLS knows no server name, and takes a client's certificate for a login.
    ...(target.tls === undefined
      ? {}
      : { http_agent: new Agent({ ...target.tls, keepAlive: true, maxSockets: connectionsMax }) }),
    // Faults are thrown, and say less: the client's own lines quote what the server could not read.
    log: { level: ClickHouseLogLevel.OFF },
  });
  const gate = createConnectGate('ClickHouse');
  const told = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (fault) {
      target.onFault?.(fault);
      throw toStoreFault(fault);
    }
  };
  return {
    read: (query, { params: query_params = {}, settings = {} } = {}) =>
      told(async () => {
        const clickhouse_settings: ClickHouseSettings = {
          max_execution_time,
          max_query_size: String(QUERY_BYTES_MIN + Buffer.byteLength(query)),
          // Microseconds are below 2^53; what may be more is asked for as text.
          output_format_json_quote_64bit_integers: 0,
          ...settings,
        };
        return (await client.query({ query, query_params, format: 'JSONEachRow', clickhouse_settings })).json();
      }),
    insert: (statement, lines, options) =>
      told(() => insertLines(client, { ...options, statement, lines, max_execution_time })),
    async ready() {
      // A question of the account: the address that only says that the server lives is answered to anybody.
      if (gate.refusalOf(target.url) !== null) return false;
      const answer = await client.ping({ select: true });
      gate.settled(target.url, answer.success ? null : answer.error);
      if (!answer.success) target.onFault?.(answer.error);
      return answer.success;
    },
    close: () => client.close(),
  };
}

interface Insertion extends InsertOptions {
  readonly statement: string;
  readonly lines: readonly string[];
  readonly max_execution_time: number;
}

async function insertLines(client: ClickHouseClient, insertion: Insertion): Promise<void> {
  const { statement, lines, token, signal, max_execution_time } = insertion;
  const { stream } = await client.exec({
    query: statement,
    values: Readable.from([lines.join('\n')], { objectMode: false }),
    abort_signal: signal,
    clickhouse_settings: {
      async_insert: 0,
      insert_deduplicate: 1,
      insert_deduplication_token: token,
      // One block under one token, however long: pieces that are read side by side would be several.
      input_format_parallel_parsing: 0,
      max_insert_block_size: String(BLOCK_ROWS_MAX),
      min_insert_block_size_rows: String(BLOCK_ROWS_MAX),
      max_insert_threads: '1',
      // Copies are folded by merges, and until then by readers: every offset of a block stands when it is asked for.
      optimize_on_insert: 0,
      max_execution_time,
      // An exception after the first bytes of an answer would otherwise look like success.
      wait_end_of_query: 1,
    },
  });
  // Until the answer has been read to its end the connection is not free.
  for await (const _ of stream);
}
