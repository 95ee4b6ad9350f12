import { storedOffsetsQuery } from '@playline/events/clickhouse';
import { BLOCK_ROWS, createEngine, type Engine, waitForMerges } from '../clickhouse.ts';
import { atMost, type Figure, type Row, toRow } from '../figure.ts';

const ROWS = 100_000_000;
const DAYS = 32;
const PARTITIONS = 6;
const DAY_MS = 86_400_000;
const MS_PER_ROW = (DAYS * DAY_MS) / ROWS;
/** Rows of one insert: few parts to merge, and about a gigabyte of ClickHouse's memory. */
const CHUNK_ROWS = 2_000_000;
const MERGES_MAX_MS = 1_800_000;

/**
 * Rows that ClickHouse reads to find which offsets of a block are stored, which a writer queries after each failed
 * attempt. The peer is the same query without the keys of the rows.
 */
export const storedOffsets: Figure = {
  name: 'stored-offsets',
  optional: true,
  async measure(bench) {
    const engine = createEngine(bench);
    const endMs = Date.now() - (Date.now() % DAY_MS);
    for (let first = 0; first < ROWS; first += CHUNK_ROWS) await engine.query(fillStatement(first, endMs));
    await waitForMerges(engine, bench.database, MERGES_MAX_MS);
    return [await compare(engine, false), await compare(engine, true)];
  },
};

/** Most messages are received within a minute, one in twenty some hours late, one in a hundred some days late. */
function fillStatement(first: number, endMs: number): string {
  return `INSERT INTO events (environment_id, event_name, event_time, received_at, message_id, identity_key,
    kafka_partition, kafka_offset)
  SELECT
    if(cityHash64(number, 1) % 10 < 6, 'live', if(cityHash64(number, 1) % 2, 'beta', 'test')),
    concat('event_', toString(toUInt8(sqrt(cityHash64(number, 2) % 1600)))),
    fromUnixTimestamp64Milli(received - multiIf(cityHash64(number, 3) % 100 < 94, cityHash64(number, 4) % 60000,
      cityHash64(number, 3) % 100 < 99, cityHash64(number, 4) % 14400000, cityHash64(number, 4) % 2505600000), 'UTC'),
    fromUnixTimestamp64Milli(received, 'UTC'),
    reinterpretAsUUID(toUInt128(number)),
    unhex(hex(sipHash128(cityHash64(number, 5) % 1000000))),
    number % ${PARTITIONS},
    intDiv(number, ${PARTITIONS})
  FROM (SELECT number, toInt64(${endMs - DAYS * DAY_MS} + number * ${MS_PER_ROW}) AS received
    FROM numbers(${first}, ${CHUNK_ROWS}))
  SETTINGS max_insert_threads = 1, max_threads = 2, max_insert_block_size = ${CHUNK_ROWS},
    min_insert_block_size_rows = ${CHUNK_ROWS}, min_insert_block_size_bytes = 0, max_block_size = 1000000`;
}

/** @param late whether the block also has messages that arrived hours and days late */
async function compare(engine: Engine, late: boolean): Promise<Row> {
  const [partition, start] = [1, Math.floor((ROWS * 0.97) / PARTITIONS)];
  const end = start + BLOCK_ROWS;
  const where = `kafka_partition = ${partition} AND kafka_offset >= ${start} AND kafka_offset < ${end}`;
  const punctual = late ? '' : 'AND received_at - event_time < 60';
  const lines = await engine.queryRows(
    `SELECT hex(formatRow('RowBinary', environment_id, '', event_name, event_time, received_at, message_id, identity_key)) FROM events
    WHERE ${where} ${punctual} FORMAT TSV`,
  );
  // The first columns of a row, as the writer has it. The query needs no others.
  const rows = lines.map(([hex = '']) => Buffer.from(hex, 'hex'));
  const bounded = await engine.measure(storedOffsetsQuery('events', { partition, start, end, rows }));
  const unbounded = await engine.measure(`SELECT DISTINCT toString(kafka_offset) FROM events WHERE ${where}`);
  return toRow({
    case: `${rows.length} rows of a block${late ? ', some of them hours and days late' : ''}, in ${ROWS / 1e6} million`,
    unit: 'rows read',
    value: bounded.readRows,
    peer: 'partition and offset alone',
    peerValue: unbounded.readRows,
    bars: [atMost('ratio', 0.1, 0.05)],
    notes: `${((100 * bounded.readRows) / ROWS).toFixed(1)} % of the table; ${Math.round(bounded.ms)} ms, peer ${Math.round(unbounded.ms)}; found ${bounded.rows} of ${rows.length}`,
  });
}
