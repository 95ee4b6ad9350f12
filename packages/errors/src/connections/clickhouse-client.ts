import { Agent } from 'node:https';
import type { ConnectionOptions } from 'node:tls';
import { toStoreFault } from '../store-fault.ts';
import { createConnectGate } from './gate.ts';

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
 * hangs gives the connection back by then. Each partition
 * that writes at the same time has a connection; more would only queue in the server.
 */
export const BLOCK_WRITER_LIMITS: ClickHouseLimits = { executionMaxS: 60, connectionsMax: 16 };

/** The server's default limit of a query's text. */
const QUERY_BYTES = 262_144;

/** The setting `max_query_size` of a query: the default, and room for the lists in its text. */
export const toQuerySize = (query: string): string => String(QUERY_BYTES + Buffer.byteLength(query));

/** What clients of ClickHouse have in common; `createClient` of `@clickhouse/client` takes `options` as they are. */
export interface ClickHouseClientSetup {
  readonly options: {
    readonly url: string;
    readonly username: string;
    readonly password: string;
    readonly database: string;
    readonly request_timeout: number;
    readonly max_open_connections: number;
    readonly http_agent?: Agent;
  };
  /** Makes a call. A fault goes to `onFault` as the client threw it. @throws StoreFault */
  call<T>(work: () => Promise<T>): Promise<T>;
  /** Whether the account can use the database. A refused login is not tried again at each question. */
  ready(client: PingedClient): Promise<boolean>;
}

/** The client, as far as `ready` asks it. */
interface PingedClient {
  ping(options: { select: true }): Promise<{ success: true } | { success: false; error: Error }>;
}

/** A call of the client is given up this much later than the server gives up its statement. */
const BEHIND_EXECUTION_S = 10;

export function createClickHouseClientSetup(
  target: ClickHouseTarget,
  { executionMaxS, connectionsMax }: ClickHouseLimits,
): ClickHouseClientSetup {
  const { url, user: username, password, database, tls, onFault } = target;
  const gate = createConnectGate('ClickHouse');
  return {
    options: {
      url,
      username,
      password,
      database,
      request_timeout: (executionMaxS + BEHIND_EXECUTION_S) * 1_000,
      max_open_connections: connectionsMax,
      // The client's own option for TLS has no server name, and takes a client's certificate for a login.
      ...(tls === undefined ? {} : { http_agent: new Agent({ ...tls, keepAlive: true, maxSockets: connectionsMax }) }),
    },
    async call(work) {
      try {
        return await work();
      } catch (fault) {
        onFault?.(fault);
        throw toStoreFault(fault);
      }
    },
    async ready(client) {
      if (gate.refusalOf(url) !== null) return false;
      // A query of the account. The server's own address for pings answers to anybody.
      const answer = await client.ping({ select: true });
      gate.settled(url, answer.success ? null : answer.error);
      if (!answer.success) onFault?.(answer.error);
      return answer.success;
    },
  };
}

/** Most rows of one block of ClickHouse. An insert of more would be several blocks under one token. */
const BLOCK_ROWS_MAX = 1_048_449;

/**
 * Settings of an insert that ClickHouse stores as one block, whatever its size, and drops when it has seen the token.
 * @param executionMaxS the server gives the insert up after so many seconds
 */
export function oneBlockSettings(token: string, executionMaxS: number) {
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
