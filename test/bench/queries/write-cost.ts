import {
  createEngine,
  type Engine,
  readBlocks,
  readColumns,
  WRITER_SETTINGS,
  waitForMerges,
  waitForRows,
} from '../clickhouse.ts';
import { atMost, type Bench, type Row, toRow } from '../figure.ts';
import { withOpened } from '../opened.ts';
import { prepareMessages, publish, publishInTransaction } from '../prepared-records.ts';
import { watchCpu } from '../processes.ts';
import { medianOf } from '../quantile.ts';
import { startWriter } from '../services.ts';

const ROWS = 300_000;
const WARM_UP_ROWS = 20_000;
const ROUNDS = 3;
const PLAIN = 'bench_events_plain';
/** `events` with a simpler sorting key and without views. */
const CREATE_PLAIN = `CREATE TABLE ${PLAIN} AS events
  ENGINE = ReplacingMergeTree(version)
  PARTITION BY toYYYYMM(event_time)
  ORDER BY (environment_id, event_name, toDate(event_time), identity_key, message_id)
  SETTINGS non_replicated_deduplication_window = 100000, merge_selector_base = 10, min_bytes_for_wide_part = 134217728,
    fsync_after_insert = 1, fsync_part_directory = 1`;

interface Spent {
  readonly inserts: number;
  readonly merges: number;
}

// Measures the CPU seconds of the writer and ClickHouse per million rows, with all views and without views.
export async function measureWriteCost(bench: Bench): Promise<Row> {
  const engine = createEngine(bench);
  const writer = await measureWriter(bench, engine);
  await engine.query(CREATE_PLAIN);
  await engine.query(`ALTER TABLE ${PLAIN} DROP INDEX message_ids, DROP COLUMN storage_delay`);
  const { names, structure } = await readColumns(engine, PLAIN);
  const blocks = await readBlocks(engine, names, { first: WARM_UP_ROWS, count: ROWS });
  const insertInto = (table: string) =>
    `INSERT INTO ${table} (${names}) SETTINGS ${WRITER_SETTINGS}, insert_deduplicate = 0, max_insert_threads = 1
     SELECT ${names} FROM input('${structure}') FORMAT RowBinary`;
  const rounds: { full: Spent; plain: Spent }[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    await emptyTables(engine);
    const fromUs = await engine.query('SELECT toUnixTimestamp64Micro(now64(6))');
    for (const block of blocks) for (const table of ['events', PLAIN]) await engine.insert(insertInto(table), block);
    await waitForMerges(engine, bench.database);
    rounds.push({ full: await readSpent(engine, fromUs, false), plain: await readSpent(engine, fromUs, true) });
  }
  await emptyTables(engine);
  const medianFor = (table: 'full' | 'plain', of: (spent: Spent) => number) =>
    medianOf(rounds.map((round) => of(round[table])));
  const engineOf = (table: 'full' | 'plain') => medianFor(table, ({ inserts, merges }) => inserts + merges);
  const describe = (table: 'full' | 'plain') =>
    `inserts ${medianFor(table, ({ inserts }) => inserts).toFixed(1)}, merges ${medianFor(table, ({ merges }) => merges).toFixed(1)}`;
  return toRow({
    case: `${ROWS} rows written`,
    unit: 'writer + engine CPU-seconds per million rows, merges included',
    value: writer + engineOf('full'),
    peer: 'a table without views',
    peerValue: writer + engineOf('plain'),
    bars: [atMost('ratio', 1.35, 1.15)],
    notes: `writer ${writer.toFixed(1)}; engine: ${describe('full')}; without views: ${describe('plain')}; engine alone ${(engineOf('full') / engineOf('plain')).toFixed(2)}`,
  });
}

const measureWriter = (bench: Bench, engine: Engine): Promise<number> =>
  withOpened(async (keep) => {
    const measured = keep(await startWriter(bench));
    await publish(bench, await prepareMessages(bench, WARM_UP_ROWS));
    await waitForRows(engine, { table: 'events', rows: WARM_UP_ROWS, measured });
    let spent = () => Number.NaN;
    await publishInTransaction(bench, await prepareMessages(bench, ROWS), async () => {
      spent = watchCpu(measured.pid);
    });
    await waitForRows(engine, { table: 'events', rows: WARM_UP_ROWS + ROWS, measured });
    return (spent() / ROWS) * 1e6;
  });

/** Reads the cost from ClickHouse's logs. An insert's cost includes its views. */
async function readSpent(engine: Engine, fromUs: string, isPlain: boolean): Promise<Spent> {
  await engine.query('SYSTEM FLUSH LOGS query_log, part_log');
  const cpu = `sum(ProfileEvents['OSCPUVirtualTimeMicroseconds']) / 1e6 / ${ROWS / 1e6}`;
  const since = (column: string) => `toUnixTimestamp64Micro(${column}) >= ${fromUs}`;
  const [inserts = Number.NaN, merges = Number.NaN] = await engine.queryNumbers(`SELECT
    (SELECT ${cpu} FROM system.query_log WHERE type = 'QueryFinish' AND query_kind = 'Insert'
      AND current_database = currentDatabase() AND ${since('query_start_time_microseconds')}
      AND (position(query, 'INTO ${PLAIN} ') > 0) = ${isPlain}),
    (SELECT ${cpu} FROM system.part_log WHERE event_type = 'MergeParts' AND database = currentDatabase()
      AND ${since('event_time_microseconds')} AND (table = '${PLAIN}') = ${isPlain})
    SETTINGS log_queries = 0`);
  return { inserts, merges };
}

async function emptyTables(engine: Engine): Promise<void> {
  const filled = await engine.queryRows(
    `SELECT DISTINCT extract(create_table_query, ' TO [^ ]*?\\\\.?\`?([a-z_]+)\`? ') FROM system.tables
     WHERE database = currentDatabase() AND engine = 'MaterializedView' FORMAT TSV`,
  );
  for (const table of ['events', PLAIN, ...filled.flat()]) await engine.query(`TRUNCATE TABLE ${table}`);
}
