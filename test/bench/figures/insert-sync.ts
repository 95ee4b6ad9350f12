import { BLOCK_ROWS, createEngine, type Engine, readColumns } from '../clickhouse.ts';
import { type Figure, toRow } from '../figure.ts';

const INSERTS = 40;
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
      for (const name of Object.keys(TABLES))
        await engine.insert(`INSERT INTO ${name} SETTINGS log_comment = '${name}' FORMAT RowBinary`, block);
    await engine.query('SYSTEM FLUSH LOGS');
    const plain = await spentOn(engine, 'kept_by_the_system');
    const rows = [];
    for (const name of Object.keys(TABLES).slice(1)) {
      const spent = await spentOn(engine, name);
      for (const unit of ['CPU-ms', 'ms'] as const)
        rows.push(
          toRow({
            case: `an insert of ${BLOCK_ROWS} rows, ${name.replaceAll('_', ' ')}`,
            unit,
            value: spent[unit],
            peer: 'floor: kept by the system',
            peerValue: plain[unit],
            notes: `p95 ${spent.p95} ms, floor ${plain.p95}, of ${INSERTS} inserts each, in turn`,
          }),
        );
    }
    return rows;
  },
};

/** Creates the tables. @returns a block that compresses about as well as events */
async function prepare(engine: Engine): Promise<Buffer> {
  for (const [name, settings] of Object.entries(TABLES)) {
    await engine.query(`CREATE TABLE ${name} AS events`);
    await engine.query(`ALTER TABLE ${name} MODIFY SETTING non_replicated_deduplication_window = 0, ${settings}`);
    await engine.query(`SYSTEM STOP MERGES ${name}`);
  }
  const { structure } = await readColumns(engine, 'events');
  const now = "toDateTime64(now64(3, 'UTC') - rand() % 3600, 3, 'UTC')";
  return engine.queryBytes(`SELECT * REPLACE (${now} AS event_time, ${now} AS received_at,
    concat('event_', toString(rand() % 40)) AS event_name, 'live' AS environment_id, '' AS type, '' AS surface,
    '' AS library, '' AS library_version, '' AS user_agent, '' AS locale, '' AS timezone, '' AS screen,
    '' AS browser_language, '' AS identity_type, '' AS from_type, '' AS to_type, '' AS consent_level,
    concat('{"level":', toString(rand() % 100), ',"mode":"ranked","weapon":"bow","score":', toString(rand()), '}')
      AS properties) FROM (SELECT * FROM generateRandom('${structure}', 1, 40, 1) LIMIT ${BLOCK_ROWS}) FORMAT RowBinary`);
}

async function spentOn(engine: Engine, table: string) {
  const [cpuMs = 0, ms = 0, p95 = 0] = await engine.queryNumbers(
    `SELECT avg(ProfileEvents['OSCPUVirtualTimeMicroseconds']) / 1000, avg(query_duration_ms),
      quantile(0.95)(query_duration_ms) FROM system.query_log
    WHERE type = 'QueryFinish' AND current_database = currentDatabase() AND log_comment = '${table}' FORMAT TSV`,
  );
  return { 'CPU-ms': cpuMs, ms, p95: Math.round(p95) };
}
