import type { Engine, QueryResult } from '../clickhouse.ts';

export interface ColdAndWarm {
  readonly coldMs: number;
  readonly warm: QueryResult;
  readonly memoryBytes: number;
  /** Least CPU of the warm runs, which depends less on other load than the time. */
  readonly cpuMs: number;
}

const WARM_TURNS = 3;
const CACHES = ['MARK CACHE', 'UNCOMPRESSED CACHE', 'PRIMARY INDEX CACHE', 'QUERY CONDITION CACHE'];
/** A repeated query would measure the cache of granules that match a condition. */
const UNCACHED = 'SETTINGS use_query_condition_cache = 0';

export async function runColdAndWarm(engine: Engine, sql: string): Promise<ColdAndWarm> {
  for (const cache of CACHES) await engine.query(`SYSTEM DROP ${cache}`);
  const cold = await runOnce(engine, sql);
  const results: QueryResult[] = [];
  for (let turn = 0; turn < WARM_TURNS; turn++) results.push(await runOnce(engine, sql));
  const warm = results.reduce((best, result) => (result.ms < best.ms ? result : best));
  const memoryBytes = Math.max(cold.memoryBytes, ...results.map((result) => result.memoryBytes));
  return { coldMs: cold.ms, warm, memoryBytes, cpuMs: await readCpuMs(engine, results) };
}

async function readCpuMs(engine: Engine, results: readonly QueryResult[]): Promise<number> {
  await engine.query('SYSTEM FLUSH LOGS query_log');
  const ids = results.map(({ queryId }) => `'${queryId}'`).join(', ');
  return engine.queryNumber(
    `SELECT min(ProfileEvents['OSCPUVirtualTimeMicroseconds']) / 1e3 FROM system.query_log
     WHERE event_date >= today() - 1 AND type = 'QueryFinish' AND query_id IN (${ids}) SETTINGS log_queries = 0`,
  );
}

/** @throws Error with the query when ClickHouse refuses it */
export async function runOnce(engine: Engine, sql: string): Promise<QueryResult> {
  return engine.measure(`${sql} ${UNCACHED}`).catch((error: Error) => {
    throw new Error(`${error.message}\nquery: ${sql}`);
  });
}
