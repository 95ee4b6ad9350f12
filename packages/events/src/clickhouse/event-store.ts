import { Agent } from 'node:https';
import { Readable } from 'node:stream';
import type { ConnectionOptions } from 'node:tls';
import { type ClickHouseClient, ClickHouseLogLevel, createClient } from '@clickhouse/client';
import { createConnectGate, toStoreFault } from '@playline/errors';
import { EVENT_TABLE_COLUMNS } from '../columns.ts';
import type { BlockInsert, EventStore, EventTable, OffsetTable, StoredQuestion } from '../store.ts';
import { deriveAgain } from './derived-tables.ts';
import { type StoredPlace, storedOffsetsQuery, toStoredOffsets } from './stored-offsets.ts';

export interface ClickHouseTarget {
  url: string;
  user: string;
  password: string;
  database: string;
  /** For `https://`: what is trusted, who we are, and the name that the certificate must bear. */
  tls?: Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'servername'>;
  /** Told of every fault of a call as the client threw it. */
  onFault?: (fault: unknown) => void;
}

/** Rows of one ClickHouse block at most; an insert of more would be several blocks under one token. */
const BLOCK_ROWS_MAX = 1_048_449;
/** Longer than any healthy insert of a block, so that a hung server gives the connection back. */
const EXECUTION_MAX_S = 60;
const REQUEST_TIMEOUT_MS = (EXECUTION_MAX_S + 10) * 1000;
/** The server's own limit: a list of keys comes on top. */
const QUERY_BYTES_MIN = 262_144;
/** One for each partition that writes at a time, more would only queue in the server. */
const CONNECTIONS_MAX = 16;

/** Opens the store; connects with the first call. */
export function openEventStore(target: ClickHouseTarget): EventStore {
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
    compression: { request: false, response: false },
    // An insert whose answer is lost on an idle connection is tried again under its token anyway.
    keep_alive: { enabled: true },
    // Faults are thrown, and say less: the client's own lines quote what the server could not read.
    log: { level: ClickHouseLogLevel.OFF },
  });
  const gate = createConnectGate('ClickHouse');
  if (target.onFault !== undefined) watchCalls(client, target.onFault);
  return {
    insert: (block) => insertBlock(client, block),
    storedOffsets: (table, asked) => readOffsets(client, table, asked),
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

/** Tells of what calls of the client throw, before it is put into the words of a store. */
function watchCalls(client: ClickHouseClient, onFault: (fault: unknown) => void): void {
  for (const name of ['exec', 'query', 'command', 'insert'] as const) {
    const call = client[name].bind(client) as (options: unknown) => Promise<unknown>;
    const watched = async (options: unknown) => {
      try {
        return await call(options);
      } catch (fault) {
        onFault(fault);
        throw fault;
      }
    };
    Object.assign(client, { [name]: watched });
  }
}

async function insertBlock(client: ClickHouseClient, block: BlockInsert): Promise<void> {
  try {
    const { stream } = await client.exec({
      query: insertStatement(block.table),
      // One chunk: the rows stand in one buffer already.
      values: Readable.from([block.rows], { objectMode: false }),
      abort_signal: block.signal,
      clickhouse_settings: {
        async_insert: 0,
        insert_deduplicate: 1,
        insert_deduplication_token: block.token,
        max_insert_block_size: String(BLOCK_ROWS_MAX),
        min_insert_block_size_rows: String(BLOCK_ROWS_MAX),
        max_insert_threads: '1',
        // Folding copies of a message within the block costs the engine 2 µs a row, two fifths of an insert. Merges and
        // FINAL fold them anyway, and so every offset of a block stands when it is asked for.
        optimize_on_insert: 0,
        max_execution_time: EXECUTION_MAX_S,
        // An exception after the first bytes of an answer would otherwise look like success.
        wait_end_of_query: 1,
      },
    });
    // Until the answer has been read to its end the connection is not free.
    for await (const _ of stream);
  } catch (error) {
    throw toStoreFault(error);
  }
}

const statements = new Map<EventTable, string>();

function insertStatement(table: EventTable): string {
  let statement = statements.get(table);
  if (statement === undefined) {
    const columns = EVENT_TABLE_COLUMNS[table];
    const names = columns.map(({ name }) => name).join(', ');
    const structure = columns.map(({ name, type }) => `${name} ${type.replaceAll("'", "\\'")}`).join(', ');
    statement = `INSERT INTO ${table} (${names}) SELECT ${names} FROM input('${structure}') FORMAT RowBinary`;
    statements.set(table, statement);
  }
  return statement;
}

async function readOffsets(client: ClickHouseClient, table: OffsetTable, asked: StoredQuestion): Promise<Set<number>> {
  try {
    const query = storedOffsetsQuery(table, asked);
    const result = await client.query({
      query,
      format: 'JSONEachRow',
      clickhouse_settings: { max_query_size: String(QUERY_BYTES_MIN + Buffer.byteLength(query)) },
    });
    const stored = toStoredOffsets(table, asked, await result.json<StoredPlace>());
    if (table === 'events' && stored.size > 0) await deriveAgain(client, asked.rows);
    return stored;
  } catch (error) {
    throw toStoreFault(error);
  }
}
