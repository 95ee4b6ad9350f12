import { Agent } from 'node:https';
import { Readable } from 'node:stream';
import type { ConnectionOptions } from 'node:tls';
import { type ClickHouseClient, ClickHouseLogLevel, type ClickHouseSettings, createClient } from '@clickhouse/client';
import { createConnectGate, toStoreFault } from '@playline/errors';

/** Where the tables are, and how they are connected to. */
export interface MintTarget {
  readonly url: string;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  /** For `https://`: what is trusted, who we are, and the name that the certificate must bear. */
  readonly tls?: Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'servername'>;
  /** Told of every fault of a call as the client threw it. */
  readonly onFault?: (fault: unknown) => void;
}

export interface MintLimits {
  /** Longer than any healthy call, so that a hung server gives the connection back. */
  readonly executionMaxS: number;
  readonly connectionsMax: number;
}

/** Rows of one block at most; an insert of more would be several blocks under one token. */
const BLOCK_ROWS_MAX = 1_048_449;
const QUERY_BYTES_MAX = 1_048_576;

/** Connects with the first call; every fault of one is a `StoreFault`. */
export function openMintConnection(target: MintTarget, limits: MintLimits) {
  const client = connect(target, limits);
  const max_execution_time = limits.executionMaxS;
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
    read: <T>(query: string, query_params: Record<string, unknown>): Promise<T[]> =>
      told(async () => {
        const clickhouse_settings: ClickHouseSettings = {
          max_execution_time,
          max_query_size: String(QUERY_BYTES_MAX),
          // Times in milliseconds and revisions are below 2^53.
          output_format_json_quote_64bit_integers: 0,
        };
        return (await client.query({ query, query_params, format: 'JSONEachRow', clickhouse_settings })).json();
      }),
    /** @param lines JSON texts, one a row */
    insert: (query: string, lines: readonly string[], options: { token: string; signal: AbortSignal }) =>
      told(async () => {
        const { stream } = await client.exec({
          query,
          values: Readable.from([lines.join('\n')], { objectMode: false }),
          abort_signal: options.signal,
          clickhouse_settings: insertSettings(options.token, max_execution_time),
        });
        // Until the answer has been read to its end the connection is not free.
        for await (const _ of stream);
      }),
    async ready(): Promise<boolean> {
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

function connect(target: MintTarget, { executionMaxS, connectionsMax }: MintLimits): ClickHouseClient {
  const { tls } = target;
  return createClient({
    url: target.url,
    username: target.user,
    password: target.password,
    database: target.database,
    request_timeout: (executionMaxS + 10) * 1_000,
    max_open_connections: connectionsMax,
    // The client's own option for TLS knows no server name, and takes a client's certificate for a login.
    ...(tls === undefined ? {} : { http_agent: new Agent({ ...tls, keepAlive: true, maxSockets: connectionsMax }) }),
    // Faults are thrown, and say less: the client's own lines quote what the server could not read.
    log: { level: ClickHouseLogLevel.OFF },
  });
}

export type MintConnection = ReturnType<typeof openMintConnection>;

const insertSettings = (token: string, max_execution_time: number): ClickHouseSettings => ({
  async_insert: 0,
  insert_deduplicate: 1,
  insert_deduplication_token: token,
  // One block under one token, however long.
  max_insert_block_size: String(BLOCK_ROWS_MAX),
  min_insert_block_size_rows: String(BLOCK_ROWS_MAX),
  max_insert_threads: '1',
  max_execution_time,
  // An exception after the first bytes of an answer would otherwise look like success.
  wait_end_of_query: 1,
});
