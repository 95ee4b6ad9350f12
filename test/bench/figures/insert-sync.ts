import { createEngine, type Engine } from '../clickhouse.ts';
import type { Bench, Figure } from '../figure.ts';
import { toRow } from '../figure.ts';

const BLOCK_ROWS = 10_000;
const INSERTS = 40;
/** Ways to make an insert durable, as settings of its table. */
const TABLES = {
  kept_by_the_system: 'fsync_after_insert = 0',
  synced: 'fsync_after_insert = 1',
  synced_with_folder: 'fsync_after_insert = 1, fsync_part_directory = 1',
} as const;

/** Cost of having an insert on disk, not only in the page cache, before it is acknowledged. */
export const insertSync: Figure = {
  name: 'insert-sync',
  optional: true,
  async measure(bench) {
    const engine = createEngine(bench);
    const block = await prepare(engine);
    // Inserts alternate, so that other load on the machine affects all ways alike.
    for (let round = 0; round < INSERTS; round++)
      for (const name of Object.keys(TABLES)) await engine.insert(insertInto(name), block);
    await engine.ask('SYSTEM FLUSH LOGS');
    const plain = await spentOn(engine, bench, 'kept_by_the_system');
    const rows = [];
    for (const name of Object.keys(TABLES).slice(1)) {
      const spent = await spentOn(engine, bench, name);
      for (const unit of ['CPU-ms', 'ms'] as const)
        rows.push(
          toRow({
            figure: 'insert-sync',
            case: `an insert of ${BLOCK_ROWS} rows, ${name.replaceAll('_', ' ')}`,
            unit,
            ours: spent[unit],
            beside: 'floor: kept by the system',
            theirs: plain[unit],
            also: `p95 ${spent.p95} ms beside ${plain.p95}, of ${INSERTS} inserts each, in turn`,
          }),
        );
    }
    return rows;
  },
};

const insertInto = (table: string) => `INSERT INTO ${table} SETTINGS log_comment = '${table}' FORMAT RowBinary`;

/** Rows that compress about as well as events: some hundred bytes of text each, a third of it new. */
async function prepare(engine: Engine): Promise<Buffer> {
  for (const [name, settings] of Object.entries(TABLES)) {
    await engine.ask(`CREATE TABLE ${name} AS events`);
    await engine.ask(`ALTER TABLE ${name} MODIFY SETTING non_replicated_deduplication_window = 0, ${settings}`);
    await engine.ask(`SYSTEM STOP MERGES ${name}`);
  }
  const source = `SELECT * FROM generateRandom('${await structureOf(engine)}', 1, 40, 1) LIMIT ${BLOCK_ROWS}`;
  const now = "toDateTime64(now64(3, 'UTC') - rand() % 3600, 3, 'UTC')";
  return await engine.read(`SELECT * REPLACE (${now} AS event_time, ${now} AS received_at,
    concat('event_', toString(rand() % 40)) AS event_name, 'live' AS environment_id, '' AS type, '' AS surface,
    '' AS library, '' AS library_version, '' AS user_agent, '' AS locale, '' AS timezone, '' AS screen,
    '' AS browser_language, '' AS identity_type, '' AS from_type, '' AS to_type, '' AS consent_level,
    concat('{"level":', toString(rand() % 100), ',"mode":"ranked","weapon":"bow","score":', toString(rand()), '}')
      AS properties) FROM (${source}) FORMAT RowBinary`);
}

async function structureOf(engine: Engine): Promise<string> {
  const described = await engine.ask(
    "SELECT name, type FROM system.columns WHERE database = currentDatabase() AND table = 'events' " +
      "AND default_kind = '' ORDER BY position FORMAT JSONCompactEachRow",
  );
  const columns = described.split('\n').map((line) => JSON.parse(line) as [string, string]);
  const plain = (type: string) => type.replace(/LowCardinality\(([A-Za-z]+)\)/, '$1').replaceAll("'", "\\'");
  return columns.map(([name, type]) => `${name} ${plain(type)}`).join(', ');
}

async function spentOn(engine: Engine, { database }: Bench, table: string) {
  const line =
    await engine.ask(`SELECT avg(ProfileEvents['OSCPUVirtualTimeMicroseconds']) / 1000, avg(query_duration_ms),
      quantile(0.95)(query_duration_ms) FROM system.query_log
    WHERE type = 'QueryFinish' AND current_database = '${database}' AND log_comment = '${table}'
    FORMAT JSONCompactEachRow`);
  const [cpuMs = 0, ms = 0, p95 = 0] = JSON.parse(line) as number[];
  return { 'CPU-ms': Number(cpuMs), ms: Number(ms), p95: Math.round(Number(p95)) };
}
