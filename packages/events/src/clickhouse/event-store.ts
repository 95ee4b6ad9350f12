import {
  BLOCK_WRITER_LIMITS,
  type ClickHouse,
  type ClickHouseTarget,
  openClickHouse,
} from '@playline/stores/clickhouse';
import { EVENT_TABLE_COLUMNS } from '../columns.ts';
import type { EventStore, EventTable, OffsetTable, StoredQuestion } from '../store.ts';
import { deriveAgain } from './derived-tables.ts';
import { type StoredPlace, storedOffsetsQuery, toStoredOffsets } from './stored-offsets.ts';

/** Opens the store; connects with the first call. */
export function openEventStore(target: ClickHouseTarget): EventStore {
  const store = openClickHouse(target, BLOCK_WRITER_LIMITS);
  return {
    insert: ({ table, rows, token, signal }) =>
      store.insertBlock({
        statement: insertStatement(table),
        body: rows,
        token,
        signal,
        // Folding copies within the block would cost 2 µs a row, two fifths of an insert. Merges and FINAL fold them
        // anyway, and this way every offset of a block is stored, as `storedOffsets` expects.
        settings: { optimize_on_insert: 0 },
      }),
    storedOffsets: (table, asked) => readOffsets(store, table, asked),
    ready: store.ready,
    close: store.close,
  };
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

async function readOffsets(store: ClickHouse, table: OffsetTable, asked: StoredQuestion): Promise<Set<number>> {
  const places = await store.read<StoredPlace>(storedOffsetsQuery(table, asked));
  const stored = toStoredOffsets(table, asked, places);
  if (table === 'events' && stored.size > 0) await store.call(() => deriveAgain(store.client, asked.rows));
  return stored;
}
