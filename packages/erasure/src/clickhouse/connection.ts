import { Agent } from 'node:https';
import { Readable } from 'node:stream';
import type { ConnectionOptions } from 'node:tls';
import { type ClickHouseClient, ClickHouseLogLevel, type ClickHouseSettings, createClient } from '@clickhouse/client';
import { createConnectGate } from '@playline/errors';
import { toRowsFault } from './fault.ts';

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

/** A column as it travels, and the expression that makes the table's own value of it. */
export interface SentColumn {
  readonly name: string;
  readonly type: string;
  readonly as: string;
}

export interface SentRows {
  readonly rows: readonly object[];
  /** A condition on the table's own values: other rows are not inserted. */
  readonly where?: string;
}

/** The few kinds of call that erasures make; every fault of one is a `RowsFault`. */
export interface Connection {
  read<T>(query: string, params?: Record<string, unknown>, settings?: ClickHouseSettings): Promise<T[]>;
  /** @param signal ends the question at once, and gives its connection back */
  stream<T>(query: string, options?: { params?: Record<string, unknown>; signal?: AbortSignal }): AsyncIterable<T>;
  run(statement: string, settings?: ClickHouseSettings): Promise<void>;
  insert(table: string, columns: readonly SentColumn[], sent: SentRows): Promise<void>;
  ready(): Promise<boolean>;
  close(): Promise<void>;
}

/** Counting a large batch reads the keys of a whole table: of a billion rows in minutes. Longer is a fault. */
const EXECUTION_MAX_S = 300;
const REQUEST_TIMEOUT_MS = (EXECUTION_MAX_S + 10) * 1000;
/** Erasures go one after the other; a stream of fences and a look at readiness come beside. */
const CONNECTIONS_MAX = 4;
const READING: ClickHouseSettings = {
  max_execution_time: EXECUTION_MAX_S,
  // Counts and times are smaller than what a JSON number holds exactly.
  output_format_json_quote_64bit_integers: 0,
  // An answer kept from before would count rows that are gone, or none where there are some.
  use_query_cache: 0,
};

/** Connects with the first call. */
export function openConnection(target: ClickHouseTarget): Connection {
  const client = createClient({
    url: target.url,
    username: target.user,
    password: target.password,
    database: target.database,
    request_timeout: REQUEST_TIMEOUT_MS,
    max_open_connections: CONNECTIONS_MAX,
    // The client's own option for TLS knows no server name, and takes a client's certificate for a login.
    ...(target.tls === undefined
      ? {}
      : { http_agent: new Agent({ ...target.tls, keepAlive: true, maxSockets: CONNECTIONS_MAX }) }),
    // Faults are thrown, and say less: the client's own lines quote what the server could not read.
    log: { level: ClickHouseLogLevel.OFF },
  });
  const gate = createConnectGate('ClickHouse');
  const told = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (fault) {
      target.onFault?.(fault);
      throw toRowsFault(fault);
    }
  };
  return {
    read: (query, query_params = {}, settings = {}) =>
      told(async () => {
        const clickhouse_settings = { ...READING, ...settings };
        return (await client.query({ query, format: 'JSONEachRow', query_params, clickhouse_settings })).json();
      }),
    stream: (query, options = {}) => streamRows(client, { query, ...options, told }),
    run: (query, clickhouse_settings = {}) =>
      told(async () => void (await client.command({ query, clickhouse_settings }))),
    insert: (table, columns, sent) => told(() => insertRows(client, table, { columns, ...sent })),
    async ready() {
      if (gate.refusalOf(target.url) !== null) return false;
      const answer = await client.ping({ select: true });
      gate.settled(target.url, answer.success ? null : answer.error);
      if (!answer.success) target.onFault?.(answer.error);
      return answer.success;
    },
    close: () => client.close(),
  };
}

interface StreamedQuestion {
  readonly query: string;
  readonly params?: Record<string, unknown>;
  readonly signal?: AbortSignal;
  readonly told: <T>(work: () => Promise<T>) => Promise<T>;
}

async function* streamRows<T>(client: ClickHouseClient, question: StreamedQuestion): AsyncGenerator<T> {
  const { query, params: query_params = {}, signal: abort_signal, told } = question;
  const settings = { clickhouse_settings: READING, query_params, ...(abort_signal && { abort_signal }) };
  const result = await told(() => client.query({ query, format: 'JSONEachRow', ...settings }));
  const blocks = result.stream<T>()[Symbol.asyncIterator]();
  try {
    for (;;) {
      const block = await told(() => blocks.next());
      if (block.done) return;
      for (const row of block.value) yield row.json() as T;
    }
  } finally {
    result.close();
  }
}

/** The rows travel in the body, so that no log of statements holds a key. */
async function insertRows(
  client: ClickHouseClient,
  table: string,
  { columns, rows, where }: SentRows & { columns: readonly SentColumn[] },
): Promise<void> {
  if (rows.length === 0) return;
  const names = columns.map(({ name }) => name).join(', ');
  const values = columns.map(({ as, name }) => `${as} AS ${name}`).join(', ');
  const structure = columns.map(({ name, type }) => `${name} ${type}`).join(', ');
  const { stream } = await client.exec({
    query: `INSERT INTO ${table} (${names}) SELECT ${values} FROM input('${structure}') ${
      where === undefined ? '' : `WHERE ${where}`
    } FORMAT JSONEachRow`,
    values: Readable.from(rows.map((row) => `${JSON.stringify(row)}\n`)),
    // Acknowledged when it is written, and a fault behind the first bytes of an answer does not look like success.
    clickhouse_settings: { async_insert: 0, wait_end_of_query: 1, max_execution_time: EXECUTION_MAX_S },
  });
  for await (const _ of stream);
}
