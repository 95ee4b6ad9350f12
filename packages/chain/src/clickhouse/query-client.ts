import { toStoreFault } from '@playline/stores';
import { type ClickHouseLimits, type ClickHouseTarget, parseError } from '@playline/stores/clickhouse';
import { errors, Pool } from 'undici';

/** The statement refers to a parameter as `{name: String}`. */
export type QueryParams = Readonly<Record<string, string>>;
export type QuerySettings = Readonly<Record<string, string | number>>;

export interface QueryResult {
  readonly bytes: Buffer;
  readonly readRows: number;
}

/** Every method may throw a StoreFault. */
export interface QueryClient {
  query(statement: string, params: QueryParams, settings: QuerySettings): Promise<QueryResult>;
  close(): void;
}

/** ClickHouse's error code for a query that exceeds its row limit. Not reported to `onFault`. */
export const TOO_MANY_ROWS = 'TOO_MANY_ROWS';

/** Large enough for several thousand ids. */
const STATEMENT_BYTES_MAX = 4 * 1024 * 1024;

/** Uses undici, because ClickHouse's own client uses several times the CPU per query. Connects on the first query. */
export function openQueryClient(target: ClickHouseTarget, limits: ClickHouseLimits): QueryClient {
  const { origin, pathname } = new URL(target.url);
  const timeoutMs = (limits.executionMaxS + 10) * 1_000;
  const pool = new Pool(origin, {
    connections: limits.connectionsMax,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    ...(target.tls && { connect: target.tls }),
  });
  const common = new URLSearchParams({
    database: target.database,
    max_execution_time: String(limits.executionMaxS),
    max_query_size: String(STATEMENT_BYTES_MAX),
    // Otherwise an error in the middle of a result would be indistinguishable from its end.
    wait_end_of_query: '1',
  });
  const headers = { 'x-clickhouse-user': target.user, 'x-clickhouse-key': target.password };
  const sendOnce = (path: string, statement: string) =>
    settle((handler) => pool.dispatch({ path, method: 'POST', headers, body: Buffer.from(statement) }, handler));
  return {
    async query(statement, params, settings) {
      const path = `${pathname}?${common}${toQuery(params, settings)}`;
      try {
        return await sendOnce(path, statement).catch((fault: unknown) => {
          // The server closed the idle connection. Queries are safe to retry.
          if (fault instanceof ClosedConnection) return sendOnce(path, statement);
          throw fault;
        });
      } catch (fault) {
        const storeFault = toStoreFault(fault);
        if (storeFault.code !== TOO_MANY_ROWS) target.onFault?.(fault);
        throw storeFault;
      }
    },
    close: () => void pool.destroy(),
  };
}

class ClosedConnection extends Error {
  readonly code = 'ECONNRESET';
}

function toQuery(params: QueryParams, settings: QuerySettings): string {
  const fields = Object.entries(params).map(([name, text]) => `&param_${name}=${encodeURIComponent(toEscaped(text))}`);
  return [...fields, ...Object.entries(settings).map(([name, value]) => `&${name}=${value}`)].join('');
}

/** Escapes a parameter, because ClickHouse parses parameters like TSV fields. */
const toEscaped = (text: string) =>
  text.replace(/[\\\t\n]/g, (found) => ({ '\\': '\\\\', '\t': '\\t', '\n': '\\n' })[found] ?? found);

const SUMMARY = 'x-clickhouse-summary';
const toReadRows = (summary: string | string[] | undefined): number =>
  Number((JSON.parse(String(summary ?? '{}')) as { read_rows?: string }).read_rows ?? 0);

type Handler = Parameters<Pool['dispatch']>[1];

function settle(dispatch: (handler: Handler) => unknown): Promise<QueryResult> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let status = 0;
    let readRows = 0;
    dispatch({
      onRequestStart: () => {},
      onResponseStart(_controller, statusCode, headers) {
        status = statusCode;
        readRows = toReadRows(headers[SUMMARY]);
      },
      onResponseData: (_controller, chunk) => void chunks.push(chunk),
      onResponseEnd() {
        const bytes = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
        if (status === 200) resolve({ bytes, readRows });
        else reject(parseError(bytes.toString()));
      },
      onResponseError: (_controller, fault) =>
        reject(status === 0 && isClosed(fault) ? new ClosedConnection(fault.message) : fault),
    });
  });
}

const isClosed = (fault: Error): boolean =>
  fault instanceof errors.SocketError || (fault as NodeJS.ErrnoException).code === 'ECONNRESET';
