import type { Engine } from '../clickhouse.ts';

/** What erasures took of the engine, by its own count. */
export interface Cost {
  readonly cpuMs: number;
  readonly readBytes: number;
}

/** Questions and statements of an eraser; fences are read by writers too, whether anybody is erased or not. */
const OF_ERASERS = `match(query, 'erasure_|system\\\\.mutations|system\\\\.processes')
  AND NOT (query_kind = 'Select' AND position(query, 'erasure_fences') > 0)`;

/**
 * What erasures have taken so far: of questions, and of changes of parts, so that ingest and readers beside them do not
 * count. Bytes are decompressed, since of a part of one file the engine counts every seek as a buffer read from the file.
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

/** Decompressed, as what is read is counted. */
export async function readTableBytes(engine: Engine): Promise<number> {
  const bytes = await engine.ask(
    `SELECT sum(data_uncompressed_bytes) FROM system.parts
     WHERE database = currentDatabase() AND active AND table = 'events'`,
  );
  return Number(bytes);
}
