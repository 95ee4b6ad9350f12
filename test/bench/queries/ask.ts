import type { Asked, Engine } from '../clickhouse.ts';

/** The results of one query: first with cold caches, then the best of some warm runs. */
export interface Answer {
  readonly coldMs: number;
  readonly warm: Asked;
  readonly memoryBytes: number;
  /** Least CPU of the warm runs. On a busy machine it says more than the time. */
  readonly cpuMs: number;
}

const WARM_TURNS = 3;
/** ClickHouse's own caches of file content. The page cache of the system stays. */
const CACHES = ['MARK CACHE', 'UNCOMPRESSED CACHE', 'PRIMARY INDEX CACHE', 'QUERY CONDITION CACHE'];
/** ClickHouse caches which granules match a condition. A repeated query would measure that cache. */
const UNREMEMBERED = 'SETTINGS use_query_condition_cache = 0';

export async function askColdAndWarm(engine: Engine, sql: string): Promise<Answer> {
  for (const cache of CACHES) await engine.ask(`SYSTEM DROP ${cache}`);
  const cold = await askOnce(engine, sql);
  const answers: Asked[] = [];
  for (let turn = 0; turn < WARM_TURNS; turn++) answers.push(await askOnce(engine, sql));
  const warm = answers.reduce((best, answer) => (answer.ms < best.ms ? answer : best));
  const memoryBytes = Math.max(cold.memoryBytes, ...answers.map((answer) => answer.memoryBytes));
  return { coldMs: cold.ms, warm, memoryBytes, cpuMs: await readCpuMs(engine, answers) };
}

async function readCpuMs(engine: Engine, answers: readonly Asked[]): Promise<number> {
  await engine.ask('SYSTEM FLUSH LOGS query_log');
  const ids = answers.map(({ queryId }) => `'${queryId}'`).join(', ');
  const answer = await engine.ask(
    `SELECT min(ProfileEvents['OSCPUVirtualTimeMicroseconds']) / 1e3 FROM system.query_log
     WHERE event_date >= today() - 1 AND type = 'QueryFinish' AND query_id IN (${ids}) SETTINGS log_queries = 0`,
  );
  return Number(answer);
}

/** @throws Error with the query when ClickHouse refuses it */
export async function askOnce(engine: Engine, sql: string): Promise<Asked> {
  return engine.measure(`${sql} ${UNREMEMBERED}`).catch((error: Error) => {
    throw new Error(`${error.message}\nasked: ${sql}`);
  });
}
