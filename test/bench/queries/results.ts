import type { Engine, QueryResult } from '../clickhouse.ts';
import { atMost, type Row, toRow } from '../figure.ts';
import type { AnalystQuery } from './queries.ts';

type ColdAndWarm = Awaited<ReturnType<typeof toColdAndWarm>>;

/** The best of a few runs of a short query varies by a third; a query of a second varies less. */
const ROUNDS = { min: 5, max: 25, untilMs: 10_000 };
const CACHES = ['MARK CACHE', 'UNCOMPRESSED CACHE', 'PRIMARY INDEX CACHE', 'QUERY CONDITION CACHE'];
/** Without this setting, repeated queries would measure the query condition cache. */
const UNCACHED = 'SETTINGS use_query_condition_cache = 0';

/** Runs the queries in turn, because the speed of a virtual machine changes within seconds. */
export async function runColdAndWarm<Queries extends Readonly<Record<string, string>>>(
  engine: Engine,
  queries: Queries,
): Promise<{ [Name in keyof Queries]: ColdAndWarm }> {
  const runs: { name: string; sql: string; cold: QueryResult; warm: QueryResult[] }[] = [];
  for (const [name, sql] of Object.entries(queries)) {
    for (const cache of CACHES) await engine.query(`SYSTEM DROP ${cache}`);
    runs.push({ name, sql, cold: await runOnce(engine, sql), warm: [] });
  }
  const startMs = performance.now();
  const isEnough = (rounds: number) => rounds >= ROUNDS.min && performance.now() - startMs >= ROUNDS.untilMs;
  for (let round = 0; round < ROUNDS.max && !isEnough(round); round++)
    for (const { sql, warm } of runs) warm.push(await runOnce(engine, sql));
  const measured: Record<string, ColdAndWarm> = {};
  for (const { name, cold, warm } of runs) measured[name] = await toColdAndWarm(engine, cold, warm);
  return measured as { [Name in keyof Queries]: ColdAndWarm };
}

async function toColdAndWarm(engine: Engine, cold: QueryResult, results: readonly QueryResult[]) {
  const warm = results.reduce((best, result) => (result.ms < best.ms ? result : best));
  const memoryBytes = Math.max(...[cold, ...results].map((result) => result.memoryBytes));
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

/** @throws Error with the query if ClickHouse rejects it */
async function runOnce(engine: Engine, sql: string): Promise<QueryResult> {
  return engine.measure(`${sql} ${UNCACHED}`).catch((error: Error) => {
    throw new Error(`${error.message}\nquery: ${sql}`);
  });
}

export interface QueryResults {
  readonly query: AnalystQuery;
  readonly raw: ColdAndWarm;
  readonly exact?: ColdAndWarm;
  readonly identified: ColdAndWarm;
  readonly peer: ColdAndWarm;
}

const MEGA = 1e6;

function describeCount(count: number): string {
  if (count >= MEGA) return `${(count / MEGA).toFixed(1)} M`;
  return count >= 1e3 ? `${Math.round(count / 1e3)} k` : String(count);
}

function describe({ coldMs, warm, memoryBytes, cpuMs }: ColdAndWarm): string {
  const megabytes = (bytes: number) => (bytes / MEGA).toFixed(bytes < 10 * MEGA ? 1 : 0);
  return `cold ${Math.round(coldMs)} ms, CPU ${Math.round(cpuMs)} ms, ${describeCount(warm.readRows)} rows, ${megabytes(warm.readBytes)} MB read, memory ${megabytes(memoryBytes)} MB`;
}

export function toQueryRows({ query, raw, exact, identified, peer }: QueryResults): Row[] {
  const row = (kind: string, own: ColdAndWarm, [name, other]: readonly [string, ColdAndWarm]) => ({
    case: `${query.name}, ${kind}`,
    unit: 'ms',
    value: own.warm.ms,
    peer: name,
    peerValue: other.warm.ms,
    notes: `${describe(own)}; peer ${describe(other)}`,
  });
  const rawRows = ['raw rows', raw] as const;
  const dayBars = query.isSingleDay ? [atMost('ratio', 3, 1.5)] : [];
  const rows = [
    ...(exact === undefined ? [] : [toRow({ ...row('exact', exact, rawRows), bars: dayBars })]),
    toRow({ ...row('identified', identified, rawRows), bars: [...dayBars, ...(query.bars ?? [])] }),
    toRow(row('identified', identified, ['peer schema', peer])),
  ];
  if (query.readRowsBar === undefined) return rows;
  const readRow = { ...row('identified', identified, rawRows), unit: 'rows read', value: identified.warm.readRows };
  return [...rows, toRow({ ...readRow, peerValue: raw.warm.readRows, bars: [query.readRowsBar], notes: '' })];
}

export const toPropertyRow = (name: string, text: ColdAndWarm, column: ColdAndWarm): Row =>
  toRow({
    case: name,
    unit: 'ms',
    value: text.warm.ms,
    peer: 'from a column',
    peerValue: column.warm.ms,
    bars: [atMost('ratio', 2)],
    notes: `${describe(text)}; column ${describe(column)}`,
  });

export function toMemoryRow(results: readonly QueryResults[]): Row {
  const largest = (runsOf: (result: QueryResults) => readonly (ColdAndWarm | undefined)[]) => {
    const used = results.flatMap((result) =>
      runsOf(result).map((run) => ({ name: result.query.name, mb: (run?.memoryBytes ?? 0) / MEGA })),
    );
    return used.reduce((largest, each) => (each.mb > largest.mb ? each : largest));
  };
  const own = largest(({ exact, identified }) => [exact, identified]);
  const raw = largest(({ raw }) => [raw]);
  const peer = largest(({ peer }) => [peer]);
  return toRow({
    case: 'peak memory of any query',
    unit: 'MB',
    value: own.mb,
    bars: [atMost('value', 500, 200)],
    peer: 'raw rows',
    peerValue: raw.mb,
    notes: `${own.name}; raw: ${raw.name}; peer ${Math.round(peer.mb)} MB: ${peer.name}`,
  });
}

export type DayCosts = ReadonlyMap<string, { readonly rows: number; readonly ms: number }>;

export async function readDayCosts(engine: Engine, queries: readonly AnalystQuery[]): Promise<DayCosts> {
  const read = new Map<string, { rows: number; ms: number }>();
  for (const { name, isSingleDay, exact, identified } of queries) {
    if (!isSingleDay) continue;
    for (const [kind, sql] of Object.entries({ exact, identified })) {
      if (sql === undefined) continue;
      const { readRows, ms } = await runOnce(engine, sql);
      read.set(`${name}, ${kind}`, { rows: readRows, ms });
    }
  }
  return read;
}

/** Queries of `events_per_day` read whole granules of a small table. */
const FEW_ROWS = 10_000;

/** Compares the cost of querying one old day before and after the history has grown fivefold. */
export function toGrowthRows(before: DayCosts, after: DayCosts): Row[] {
  return [...after].map(([name, { rows, ms }]) => {
    const earlier = before.get(name) ?? { rows: Number.NaN, ms: Number.NaN };
    return toRow({
      case: `${name}, for an old day`,
      unit: 'rows read',
      value: rows,
      peer: 'with a fifth of the history',
      peerValue: earlier.rows,
      bars: rows > FEW_ROWS ? [atMost('ratio', 1.2)] : [],
      notes: `one run each: ${ms.toFixed(1)} and ${earlier.ms.toFixed(1)} ms`,
    });
  });
}
