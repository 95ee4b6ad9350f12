import { storedOffsetsQuery } from '@playline/events/clickhouse';
import { BLOCK_ROWS, createEngine, type Engine, readColumns, waitForMerges } from '../clickhouse.ts';
import { atMost, type Figure, type Row, toRow } from '../figure.ts';

const INSERTS = 40;
const TABLES = {
  not_synced: 'fsync_after_insert = 0',
  synced: 'fsync_after_insert = 1',
  synced_with_folder: 'fsync_after_insert = 1, fsync_part_directory = 1',
} as const;

/** Cost of syncing an insert to disk before it is acknowledged, instead of only writing to the page cache. */
export const insertSync: Figure = {
  name: 'insert-sync',
  optional: true,
  async measure(bench) {
    const engine = createEngine(bench);
    const { names, block } = await prepare(engine);
    // Alternates between tables, so that other load on the machine affects all of them equally.
    for (let round = 0; round < INSERTS; round++)
      for (const name of Object.keys(TABLES))
        await engine.insert(`INSERT INTO ${name} (${names}) SETTINGS log_comment = '${name}' FORMAT RowBinary`, block);
    await engine.query('SYSTEM FLUSH LOGS');
    const plain = await readInsertCost(engine, 'not_synced');
    const rows = [];
    for (const name of Object.keys(TABLES).slice(1)) {
      const spent = await readInsertCost(engine, name);
      for (const unit of ['CPU-ms', 'ms'] as const)
        rows.push(
          toRow({
            case: `an insert of ${BLOCK_ROWS} rows, ${name.replaceAll('_', ' ')}`,
            unit,
            value: spent[unit],
            peer: 'floor: not synced',
            peerValue: plain[unit],
            notes: `p95 ${spent.p95} ms, floor ${plain.p95}; ${INSERTS} alternating inserts each`,
          }),
        );
    }
    return rows;
  },
};

/** Creates the tables. @returns the names of the columns, and a block of rows that compress about as well as real events */
async function prepare(engine: Engine): Promise<{ names: string; block: Buffer }> {
  for (const [name, settings] of Object.entries(TABLES)) {
    await engine.query(`CREATE TABLE ${name} AS events`);
    await engine.query(`ALTER TABLE ${name} MODIFY SETTING non_replicated_deduplication_window = 0, ${settings}`);
    await engine.query(`SYSTEM STOP MERGES ${name}`);
  }
  const { names, structure } = await readColumns(engine, 'events');
  const now = "toDateTime64(now64(3, 'UTC') - rand() % 3600, 3, 'UTC')";
  const block = await engine.queryBytes(`SELECT * REPLACE (${now} AS event_time, ${now} AS received_at,
    concat('event_', toString(rand() % 40)) AS event_name, 'live' AS environment_id, '' AS type, '' AS surface,
    '' AS library, '' AS library_version, '' AS user_agent, '' AS locale, '' AS timezone, '' AS screen,
    '' AS browser_language, '' AS identity_type, '' AS from_type, '' AS to_type, '' AS consent_level,
    concat('{"level":', toString(rand() % 100), ',"mode":"ranked","weapon":"bow","score":', toString(rand()), '}')
      AS properties) FROM (SELECT * FROM generateRandom('${structure}', 1, 40, 1) LIMIT ${BLOCK_ROWS}) FORMAT RowBinary`);
  return { names, block };
}

async function readInsertCost(engine: Engine, table: string) {
  const [cpuMs = 0, ms = 0, p95 = 0] = await engine.queryNumbers(
    `SELECT avg(ProfileEvents['OSCPUVirtualTimeMicroseconds']) / 1000, avg(query_duration_ms),
      quantile(0.95)(query_duration_ms) FROM system.query_log
    WHERE type = 'QueryFinish' AND current_database = currentDatabase() AND log_comment = '${table}' FORMAT TSV`,
  );
  return { 'CPU-ms': cpuMs, ms, p95: Math.round(p95) };
}

const ROWS = 100_000_000;
const DAYS = 32;
const PARTITIONS = 6;
const DAY_MS = 86_400_000;
const MS_PER_ROW = (DAYS * DAY_MS) / ROWS;
/** Rows per insert. Leaves few parts to merge, and uses about 1 GB of ClickHouse memory. */
const CHUNK_ROWS = 2_000_000;
const MERGES_MAX_MS = 1_800_000;

// Rows read by the query for a block's stored offsets. The peer is the same query without the row keys.
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

/** Most messages arrive within a minute, one in 20 arrives hours late, and one in 100 arrives days late. */
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

/** @param late includes messages that arrived hours or days late */
async function compare(engine: Engine, late: boolean): Promise<Row> {
  const [partition, start] = [1, Math.floor((ROWS * 0.97) / PARTITIONS)];
  const end = start + BLOCK_ROWS;
  const where = `kafka_partition = ${partition} AND kafka_offset >= ${start} AND kafka_offset < ${end}`;
  const withoutLate = late ? '' : 'AND received_at - event_time < 60';
  const lines = await engine.queryRows(
    `SELECT hex(formatRow('RowBinary', environment_id, '', event_name, event_time, received_at, message_id, identity_key)) FROM events
    WHERE ${where} ${withoutLate} FORMAT TSV`,
  );
  // The query needs only the first columns of the writer's row format.
  const rows = lines.map(([hex = '']) => Buffer.from(hex, 'hex'));
  const bounded = await engine.measure(storedOffsetsQuery('events', { partition, start, end, rows }));
  const unbounded = await engine.measure(`SELECT DISTINCT toString(kafka_offset) FROM events WHERE ${where}`);
  return toRow({
    case: `a block of ${rows.length} rows${late ? ', some hours or days late' : ''}, among ${ROWS / 1e6} million`,
    unit: 'rows read',
    value: bounded.readRows,
    peer: 'partition and offset alone',
    peerValue: unbounded.readRows,
    bars: [atMost('ratio', 0.1, 0.05)],
    notes: `${((100 * bounded.readRows) / ROWS).toFixed(1)} % of the table; ${Math.round(bounded.ms)} ms, peer ${Math.round(unbounded.ms)}; found ${bounded.rows} of ${rows.length}`,
  });
}
