import { Readable } from 'node:stream';
import { type ClickHouseClient, ClickHouseLogLevel, createClient } from '@clickhouse/client';
import {
  BLOCK_WRITER_LIMITS,
  type ClickHouseTarget,
  createClickHouseClientSetup,
  oneBlockSettings,
  toQuerySize,
} from '@playline/errors';
import { EVENT_TABLE_COLUMNS } from '../columns.ts';
import type { BlockInsert, EventStore, EventTable, OffsetTable, StoredQuestion } from '../store.ts';
import { deriveAgain } from './derived-tables.ts';
import { type StoredPlace, storedOffsetsQuery, toStoredOffsets } from './stored-offsets.ts';

/** Opens the store; connects with the first call. */
export function openEventStore(target: ClickHouseTarget): EventStore {
  const setup = createClickHouseClientSetup(target, BLOCK_WRITER_LIMITS);
  const client = createClient({
    ...setup.options,
    compression: { request: false, response: false },
    // Safe: an insert whose answer is lost on a stale connection is repeated under the same token.
    keep_alive: { enabled: true },
    // Off, because the client's log lines quote data that the server could not read. Faults are thrown without it.
    log: { level: ClickHouseLogLevel.OFF },
  });
  return {
    insert: (block) => setup.call(() => insertBlock(client, block)),
    storedOffsets: (table, asked) => setup.call(() => readOffsets(client, table, asked)),
    ready: () => setup.ready(client),
    close: () => client.close(),
  };
}

async function insertBlock(client: ClickHouseClient, block: BlockInsert): Promise<void> {
  const { stream } = await client.exec({
    query: insertStatement(block.table),
    // Not in object mode, so that the buffer is sent as one chunk.
    values: Readable.from([block.rows], { objectMode: false }),
    abort_signal: block.signal,
    clickhouse_settings: {
      ...oneBlockSettings(block.token, BLOCK_WRITER_LIMITS.executionMaxS),
      // Folding copies within the block would cost 2 µs a row, two fifths of an insert. Merges and FINAL fold them
      // anyway, and this way every offset of a block is stored, as `storedOffsets` expects.
      optimize_on_insert: 0,
    },
  });
  // The connection is not free until the answer has been read to its end.
  for await (const _ of stream);
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
  const query = storedOffsetsQuery(table, asked);
  const result = await client.query({
    query,
    format: 'JSONEachRow',
    clickhouse_settings: { max_query_size: toQuerySize(query) },
  });
  const stored = toStoredOffsets(table, asked, await result.json<StoredPlace>());
  if (table === 'events' && stored.size > 0) await deriveAgain(client, asked.rows);
  return stored;
}
