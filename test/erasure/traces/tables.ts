import { SYSTEM_STORES } from '@playline/erasure';
import { type Engine, query, rowsOf } from '../../faults/world/clickhouse.ts';
import type { Needle, Trace } from './needle.ts';

/**
 * Searches all product tables and the system tables that contain statements or error messages. Rows are read in a
 * binary format, so that keys are found in columns of any type.
 * @param options.deleted whether to include rows that are masked as deleted
 */
export async function findInTables(
  engine: Engine,
  needles: readonly Needle[],
  { deleted = false }: { deleted?: boolean } = {},
): Promise<Trace[]> {
  // ClickHouse writes log tables with a delay.
  await query(engine, 'SYSTEM FLUSH LOGS');
  const system = SYSTEM_STORES.map(({ name }) => `'${name}'`).join(', ');
  const tables = await rowsOf(
    engine,
    `SELECT database, name FROM system.tables WHERE (database = currentDatabase() AND engine LIKE '%MergeTree')
       OR (database = 'system' AND name IN (${system})) ORDER BY database, name`,
  );
  const traces: Trace[] = [];
  for (const [database = '', name = ''] of tables) {
    const found = await searchTable(engine, queryOf(`${database}.${name}`, needles, deleted));
    const location = `table ${database === 'system' ? 'system.' : ''}${name}`;
    for (const [at = '', count] of found) {
      const { name: needle, kind } = needles[Number(at)]!;
      traces.push({ location, needle, kind, count: Number(count) });
    }
  }
  return traces;
}

/** `distributed_ddl_queue` requires a Keeper, which a single server does not have. */
async function searchTable(engine: Engine, sql: string): Promise<string[][]> {
  return await rowsOf(engine, sql).catch((fault: Error) => {
    if (fault.message.includes('There is no Zookeeper configuration')) return [];
    throw fault;
  });
}

/** The statement contains reversed needles and is not logged, so that the search does not find itself. */
function queryOf(table: string, needles: readonly Needle[], deleted: boolean): string {
  const wanted = needles.map(
    ({ bytes }, at) => `(${at}, reverse(unhex('${Buffer.from(bytes).reverse().toString('hex')}')))`,
  );
  return `SELECT needle.1 AS at, count() FROM (SELECT formatRow('RowBinary', *) AS row FROM ${table})
    ARRAY JOIN [${wanted.join(', ')}] AS needle WHERE position(row, needle.2) > 0 GROUP BY at ORDER BY at
    SETTINGS log_queries = 0, asterisk_include_materialized_columns = 1, asterisk_include_alias_columns = 1,
      use_query_cache = 0, apply_deleted_mask = ${deleted ? 0 : 1}`;
}
