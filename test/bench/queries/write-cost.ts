import { createEngine, type Engine, waitForMerges, waitForRows } from '../clickhouse.ts';
import { type Bar, type Bench, type Row, toRow } from '../figure.ts';
import { prepareMessages, publish, publishAtOnce } from '../prepared-records.ts';
import { watchCpu } from '../processes.ts';
import { medianOf } from '../quantile.ts';
import { openWriter } from '../writer-process.ts';

const ROWS = 300_000;
const WARM_UP_ROWS = 20_000;
/** As many rows as a block of the writer. */
const BLOCK_ROWS = 10_000;
const TURNS = 3;
const MILLION = 1_000_000;
const OVER_BEFORE: readonly Bar[] = [{ of: 'ratio', bound: 'at most', must: 1.35, aim: 1.15 }];
const BEFORE = 'bench_events_before';
/** `events` as it was before tables for analysts existed: its order and filters, without views. */
const CREATE_BEFORE = `CREATE TABLE ${BEFORE} AS events
  ENGINE = ReplacingMergeTree(version)
  PARTITION BY toYYYYMM(event_time)
  ORDER BY (environment_id, event_name, toDate(event_time), identity_key, message_id)
  SETTINGS non_replicated_deduplication_window = 100000, merge_selector_base = 10, min_bytes_for_wide_part = 134217728,
    fsync_after_insert = 1, fsync_part_directory = 1`;

/**
 * CPU-seconds of writer and ClickHouse per million rows, for `events` with all its views. Beside it is the table as it
 * was before.
 */
export async function measureWriteCost(bench: Bench): Promise<Row> {
  const engine = createEngine(bench);
  const writer = await measureWriter(bench, engine);
  const columns = await createBefore(engine);
  const blocks = await readBlocks(engine, columns);
  const [now, before]: [Spent[], Spent[]] = [[], []];
  for (let turn = 0; turn < TURNS; turn++) {
    const spent = await insertInTurn(bench, engine, { columns, blocks });
    now.push(spent.now);
    before.push(spent.before);
  }
  await emptyTables(bench, engine);
  const engineOf = (spent: readonly Spent[]) => medianOf(spent.map(({ inserts, merges }) => inserts + merges));
  const parts = (spent: readonly Spent[]) =>
    `inserts ${medianOf(spent.map(({ inserts }) => inserts)).toFixed(1)}, merges ${medianOf(spent.map(({ merges }) => merges)).toFixed(1)}`;
  return toRow({
    ...{
      figure: 'queries',
      case: `${ROWS} rows written`,
      unit: 'writer + engine CPU-seconds per million rows, merges included',
    },
    ...{
      ours: writer + engineOf(now),
      beside: 'the table of before',
      theirs: writer + engineOf(before),
      bars: OVER_BEFORE,
    },
    also: `writer ${writer.toFixed(1)}; engine: ${parts(now)}; before: ${parts(before)}; engine alone ${(engineOf(now) / engineOf(before)).toFixed(2)}`,
  });
}

/** @returns the writer's own CPU-seconds per million rows, which `events` has then */
async function measureWriter(bench: Bench, engine: Engine): Promise<number> {
  const measured = await openWriter(bench);
  try {
    const warmUp = await prepareMessages(bench, WARM_UP_ROWS);
    await publish(bench, warmUp);
    await waitForRows(engine, { table: 'events', rows: WARM_UP_ROWS, measured });
    let spent = () => Number.NaN;
    await publishAtOnce(bench, await prepareMessages(bench, ROWS), async () => {
      spent = watchCpu(measured.pid);
    });
    await waitForRows(engine, { table: 'events', rows: WARM_UP_ROWS + ROWS, measured });
    return (spent() / ROWS) * MILLION;
  } finally {
    await measured.close();
  }
}

interface Column {
  readonly name: string;
  readonly type: string;
}

/** @returns the columns that a writer fills */
async function createBefore(engine: Engine): Promise<Column[]> {
  await engine.ask(CREATE_BEFORE);
  await engine.ask(`ALTER TABLE ${BEFORE} DROP INDEX message_ids`);
  const described = await engine.ask(
    `SELECT name, type FROM system.columns WHERE database = currentDatabase() AND table = '${BEFORE}' AND default_kind = ''
     ORDER BY position FORMAT JSONEachRow`,
  );
  return described.split('\n').map((line) => JSON.parse(line) as Column);
}

async function readBlocks(engine: Engine, columns: readonly Column[]): Promise<Buffer[]> {
  const names = columns.map(({ name }) => name).join(', ');
  const blocks: Buffer[] = [];
  for (let first = WARM_UP_ROWS; first < WARM_UP_ROWS + ROWS; first += BLOCK_ROWS)
    blocks.push(
      await engine.read(
        `SELECT ${names} FROM events ORDER BY kafka_partition, kafka_offset LIMIT ${BLOCK_ROWS} OFFSET ${first} FORMAT RowBinary`,
      ),
    );
  return blocks;
}

/** CPU-seconds of ClickHouse per million rows. */
interface Spent {
  readonly inserts: number;
  readonly merges: number;
}

async function insertInTurn(
  bench: Bench,
  engine: Engine,
  { columns, blocks }: { columns: readonly Column[]; blocks: readonly Buffer[] },
): Promise<{ now: Spent; before: Spent }> {
  await emptyTables(bench, engine);
  const names = columns.map(({ name }) => name).join(', ');
  // As the writer does, input() declares the plain type for a LowCardinality column. Copies are folded later.
  const types = columns
    .map(({ name, type }) => `${name} ${type.replace(/LowCardinality\(([A-Za-z]+)\)/, '$1')}`)
    .join(', ');
  const statementOf = (table: string) =>
    `INSERT INTO ${table} (${names}) SETTINGS optimize_on_insert = 0, insert_deduplicate = 0, max_insert_threads = 1
     SELECT ${names} FROM input('${types.replaceAll("'", "\\'")}') FORMAT RowBinary`;
  const fromUs = await engine.ask('SELECT toUnixTimestamp64Micro(now64(6))');
  for (const block of blocks) for (const table of ['events', BEFORE]) await engine.insert(statementOf(table), block);
  await waitForMerges(engine, bench.database);
  return readSpent(bench, engine, fromUs);
}

/** Reads the cost from ClickHouse's own logs. That of an insert includes its views. */
async function readSpent({ database }: Bench, engine: Engine, fromUs: string): Promise<{ now: Spent; before: Spent }> {
  await engine.ask('SYSTEM FLUSH LOGS query_log, part_log');
  const cpu = `sum(ProfileEvents['OSCPUVirtualTimeMicroseconds']) / 1e6 / ${ROWS / MILLION}`;
  const since = (column: string) => `toUnixTimestamp64Micro(${column}) >= ${fromUs}`;
  const inserts = (isBefore: string) =>
    `(SELECT ${cpu} FROM system.query_log WHERE type = 'QueryFinish' AND query_kind = 'Insert' AND current_database = '${database}'
      AND ${since('query_start_time_microseconds')} AND (position(query, 'INTO ${BEFORE} ') > 0) = ${isBefore})`;
  const merges = (isBefore: string) =>
    `(SELECT ${cpu} FROM system.part_log WHERE event_type = 'MergeParts' AND database = '${database}'
      AND ${since('event_time_microseconds')} AND (table = '${BEFORE}') = ${isBefore})`;
  const answer = await engine.ask(
    `SELECT ${inserts('0')}, ${merges('0')}, ${inserts('1')}, ${merges('1')} SETTINGS log_queries = 0`,
  );
  const [insertsNow = Number.NaN, mergesNow = Number.NaN, insertsThen = Number.NaN, mergesThen = Number.NaN] = answer
    .split('\t')
    .map(Number);
  return { now: { inserts: insertsNow, merges: mergesNow }, before: { inserts: insertsThen, merges: mergesThen } };
}

/** Empties `events` and every table that a view of this database fills from it. */
async function emptyTables({ database }: Bench, engine: Engine): Promise<void> {
  const answer = await engine.ask(
    `SELECT DISTINCT extract(create_table_query, ' TO [^ ]*?\\\\.?\`?([a-z_]+)\`? ') FROM system.tables
     WHERE database = '${database}' AND engine = 'MaterializedView'`,
  );
  const fed = answer.split('\n').filter((name) => name !== '');
  for (const table of ['events', BEFORE, ...fed]) await engine.ask(`TRUNCATE TABLE ${table}`);
}
