import type { Engine } from '../clickhouse.ts';

/** What erasures have cost ClickHouse, by its own logs. */
export interface Cost {
  readonly cpuMs: number;
  readonly readBytes: number;
}

/**
 * Queries and statements of an eraser. Reads of fences do not count, because writers read them too, with or without
 * erasures.
 */
const OF_ERASERS = `match(query, 'erasure_|system\\\\.mutations|system\\\\.processes')
  AND NOT (query_kind = 'Select' AND position(query, 'erasure_fences') > 0)`;

/**
 * Cost of erasures so far: their queries and their mutations. Ingest and other readers do not count. Bytes are
 * decompressed, because ClickHouse counts every seek in a compact part as a whole buffer of file reads.
 */
export async function readCost(engine: Engine, database: string): Promise<Cost> {
  await engine.ask('SYSTEM FLUSH LOGS query_log, part_log');
  const sums = `sum(ProfileEvents['OSCPUVirtualTimeMicroseconds']) AS cpu, sum(ProfileEvents['CompressedReadBufferBytes']) AS bytes`;
  const answer = await engine.ask(
    `SELECT sum(cpu), sum(bytes) FROM (
       SELECT ${sums} FROM system.query_log
       WHERE type != 'QueryStart' AND current_database = '${database}' AND ${OF_ERASERS}
       UNION ALL SELECT ${sums} FROM system.part_log WHERE database = '${database}' AND event_type = 'MutatePart')
     FORMAT TSV SETTINGS log_queries = 0`,
  );
  const [cpu = Number.NaN, readBytes = Number.NaN] = answer.split('\t').map(Number);
  return { cpuMs: cpu / 1_000, readBytes };
}

/** Decompressed, to compare with the bytes read. */
export async function readTableBytes(engine: Engine): Promise<number> {
  const bytes = await engine.ask(
    `SELECT sum(data_uncompressed_bytes) FROM system.parts
     WHERE database = currentDatabase() AND active AND table = 'events'`,
  );
  return Number(bytes);
}
