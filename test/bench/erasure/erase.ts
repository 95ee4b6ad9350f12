import { setTimeout as delay } from 'node:timers/promises';
import {
  ERASED_TABLES,
  type ErasureReceipt,
  type ErasureRecords,
  type ErasureRows,
  LOG_EXPIRES_AFTER_MS,
  removeFromDisk,
} from '@playline/erasure';
import { createEngine, type Engine, waitForMerges, watchEngineCpu } from '../clickhouse.ts';
import type { Bench, Range } from '../figure.ts';
import { loadOn } from '../load.ts';
import { waitFor } from '../processes.ts';
import { quantileOf } from '../quantile.ts';
import { repeatEvery } from '../repeat.ts';
import type { Server } from '../services.ts';
import { countRowsOf, type People } from './people.ts';

export interface Scene {
  readonly bench: Bench;
  readonly server: Server;
  readonly rows: ErasureRows;
  readonly records: ErasureRecords;
  readonly people: People;
}

export type Erased = Awaited<ReturnType<typeof eraseRange>>;

const CONNECTIONS = 32;
const RECEIPTS_MAX_MS = 600_000;

/**
 * Requests the erasure of several people concurrently and waits for the receipts.
 * @throws Error if any of their rows remain or the receipts report a wrong number of rows
 */
export async function eraseRange({ bench, server, records, people }: Scene, range: Range) {
  const engine = createEngine(bench);
  const { events, other } = await countRowsOf(engine, range);
  if (events === 0 || other === 0) throw new Error(`nothing to erase: ${events} events, ${other} other rows`);
  const before = await readCost(engine);
  const { erasureIds, acceptedMs } = await requestErasures(bench, server, { people, range });
  await waitForReceipts(engine, erasureIds);
  const remaining = await countRowsOf(engine, range);
  if (remaining.events + remaining.other > 0)
    throw new Error(`rows remain after the erasures: ${JSON.stringify(remaining)}`);
  const after = await readCost(engine);
  const ids = new Set([...erasureIds].map((id) => id.replaceAll('-', '')));
  const receipts = (await records.readOpenReceipts()).filter(({ erasureId }) => ids.has(erasureId.toString('hex')));
  const deleted = receipts.reduce((sum, receipt) => sum + (receipt.deleted['clickhouse.events'] ?? 0), 0);
  if (deleted !== events) throw new Error(`the receipts report ${deleted} deleted events instead of ${events}`);
  const cost = { cpuMs: after.cpuMs - before.cpuMs, readBytes: after.readBytes - before.readBytes };
  return { receipts, events, acceptedMs, ...cost };
}

async function requestErasures(
  { secretKey }: Bench,
  { port }: Server,
  { people, range: { first, count } }: { people: People; range: Range },
): Promise<{ erasureIds: ReadonlySet<string>; acceptedMs: number }> {
  const erasureIds = new Set<string>();
  const startMs = performance.now();
  let next = first;
  const send = async () => {
    while (next < first + count) {
      const target = `http://127.0.0.1:${port}/v1/audience/data?anonymousId=${people.anonymousIdOf(next++)}`;
      const response = await fetch(target, { method: 'DELETE', headers: { 'x-service-api-key': secretKey } });
      if (response.status !== 202) throw new Error(`an erasure request failed with status ${response.status}`);
      erasureIds.add(response.headers.get('x-erasure-id') ?? '');
    }
  };
  await Promise.all(Array.from({ length: Math.min(CONNECTIONS, count) }, send));
  return { erasureIds, acceptedMs: performance.now() - startMs };
}

/** Waits until each erasure has a receipt and no batch is in progress, with queries that are not logged. */
async function waitForReceipts(engine: Engine, erasureIds: ReadonlySet<string>): Promise<void> {
  const count = (sql: string) => engine.queryNumber(`${sql} SETTINGS log_queries = 0`);
  const receipts = `SELECT uniqExact(erasure_id) FROM erasure_receipts WHERE erasure_id IN (
    SELECT arrayJoin(JSONExtract('${JSON.stringify([...erasureIds])}', 'Array(UUID)')))`;
  const areStored = async () => (await count(receipts)) === erasureIds.size;
  await waitFor(`${erasureIds.size} receipts`, areStored, { maxMs: RECEIPTS_MAX_MS });
  const isOver = async () => (await count('SELECT count() FROM erasure_progress')) === 0;
  await waitFor('no batch is in progress', isOver, { maxMs: RECEIPTS_MAX_MS });
}

/** Selects the eraser's statements, except for reads of fences, which writers also perform. */
const IS_ERASER_STATEMENT = `match(query, 'erasure_|system\\\\.mutations|system\\\\.processes')
  AND NOT (query_kind = 'Select' AND position(query, 'erasure_fences') > 0)`;

// Reads the total cost of all erasures, including mutations. Bytes are counted after decompression, because ClickHouse
// counts every seek in a compact part as a read of a whole buffer.
async function readCost(engine: Engine): Promise<{ cpuMs: number; readBytes: number }> {
  await engine.query('SYSTEM FLUSH LOGS query_log, part_log');
  const sums = `sum(ProfileEvents['OSCPUVirtualTimeMicroseconds']) AS cpu, sum(ProfileEvents['CompressedReadBufferBytes']) AS bytes`;
  const [cpu = Number.NaN, readBytes = Number.NaN] = await engine.queryNumbers(
    `SELECT sum(cpu), sum(bytes) FROM (
       SELECT ${sums} FROM system.query_log
       WHERE type != 'QueryStart' AND current_database = currentDatabase() AND ${IS_ERASER_STATEMENT}
       UNION ALL SELECT ${sums} FROM system.part_log WHERE database = currentDatabase() AND event_type = 'MutatePart')
     FORMAT TSV SETTINGS log_queries = 0`,
  );
  return { cpuMs: cpu / 1_000, readBytes };
}

export type Phases = ReturnType<typeof phasesOf>;

export function phasesOf({ acceptedAt, fencedAt, visiblyErasedAt, logExpiresAt }: ErasureReceipt) {
  const storedAt = logExpiresAt - LOG_EXPIRES_AFTER_MS;
  return {
    total: visiblyErasedAt - acceptedAt,
    fence: fencedAt - acceptedAt,
    log: storedAt - fencedAt,
    deletion: visiblyErasedAt - storedAt,
  };
}

export const INGEST = { batchSize: 20, requestsPerSecond: 50, connections: 25 };
const QUIET_MS = 30_000;
const BUSY_MAX_MS = 3_600_000;
/** Yields enough queries for a p99 within half a minute, without overloading ClickHouse. */
const QUERY_INTERVAL_MS = 100;

interface Quantiles {
  readonly p50: number;
  readonly p99: number;
  readonly responses: number;
}

/** Response times in milliseconds for clients' batches and an analyst's queries. */
export type ResponseTimes = Readonly<Record<'gateway' | 'analyst', Quantiles>>;

/** Response times in the 30 s before the work (quiet) and during the work (busy). */
export interface Bystanders {
  readonly quiet: ResponseTimes;
  readonly busy: ResponseTimes;
}

export async function watchBystanders<T>(
  scene: Scene,
  work: () => Promise<T>,
): Promise<{ result: T; bystanders: Bystanders }> {
  const quiet = await measureTimes(scene, { windowMs: QUIET_MS });
  const results: T[] = [];
  const busy = await measureTimes(scene, { windowMs: BUSY_MAX_MS, work: async () => void results.push(await work()) });
  return { result: results[0] as T, bystanders: { quiet, busy } };
}

async function measureTimes(
  { bench, server }: Scene,
  window: { windowMs: number; work?: () => Promise<void> },
): Promise<ResponseTimes> {
  const engine = createEngine(bench);
  const latenciesMs: number[] = [];
  const analyst = repeatEvery(QUERY_INTERVAL_MS, async () => {
    const startMs = performance.now();
    await engine.query(analystQuery(bench.environmentId));
    latenciesMs.push(performance.now() - startMs);
  });
  const load = await loadOn(server, bench, { ...INGEST, ...window }).finally(() => analyst.close());
  const [p50, p99] = [quantileOf(latenciesMs, 0.5), quantileOf(latenciesMs, 0.99)];
  return {
    gateway: { p50: load.p50Ms, p99: load.p99Ms, responses: load.requests },
    analyst: { p50, p99, responses: latenciesMs.length },
  };
}

const analystQuery = (environmentId: string) =>
  `SELECT toDate(event_time) AS day, count(), uniq(identity_key) FROM events FINAL
   WHERE environment_id = '${environmentId}' AND event_name = 'event_7' AND event_time >= now() - INTERVAL 30 DAY
   GROUP BY day ORDER BY day FORMAT TSV
   SETTINGS do_not_merge_across_partitions_select_final = 1`;

const POLL_MS = 1_000;

// Makes ClickHouse delete replaced files soon. A table applies the settings after its next cleanup, so call this early.
export const shortenCleanups = (engine: Engine): Promise<void> =>
  changeTables(engine, 'cleanup_delay_period = 1, max_cleanup_delay_period = 1, cleanup_delay_period_random_add = 0');

async function changeTables(engine: Engine, settings: string): Promise<void> {
  for (const table of [...ERASED_TABLES.map(({ name }) => name), 'erasure_targets', 'erasure_found'])
    await engine.query(`ALTER TABLE ${table} MODIFY SETTING ${settings}`);
}

interface Stores {
  readonly rows: ErasureRows;
  readonly records: ErasureRecords;
}

export type Removal = Awaited<ReturnType<typeof measureRemoval>>;

/** @throws Error if a file still contains a deleted row or a receipt does not confirm the removal */
export async function measureRemoval(bench: Bench, stores: Stores, receipts: number) {
  const engine = createEngine(bench);
  await changeTables(engine, 'old_parts_lifetime = 1');
  await waitForMerges(engine, bench.database);
  const cpu = await watchEngineCpu(engine, 'erasure_targets');
  const { removal, ...durations } = await runRemoval(stores);
  const cpuSeconds = cpu();
  const { marked, foundOnDisk } = removal;
  if (foundOnDisk.length > 0) throw new Error(`rows found in files: ${JSON.stringify(foundOnDisk)}`);
  if (marked !== receipts)
    throw new Error(`${marked} of ${receipts} receipts confirm that no file contains a deleted row`);
  return { ...durations, cpuSeconds, idleMs: (await runRemoval(stores)).ms };
}

async function runRemoval({ rows, records }: Stores) {
  const spent = { writtenMs: 0, searchedMs: 0, waitedMs: 0 };
  const timed = <T>(name: keyof typeof spent, work: Promise<T>): Promise<T> => {
    const startMs = performance.now();
    return work.finally(() => {
      spent[name] += performance.now() - startMs;
    });
  };
  const startMs = performance.now();
  const removal = await removeFromDisk({
    rows: {
      ...rows,
      removeDeleted: () => timed('writtenMs', rows.removeDeleted()),
      findOnDisk: (batchId) => timed('searchedMs', rows.findOnDisk(batchId)),
    },
    records,
    wallClockMs: Date.now,
    pause: () => timed('waitedMs', delay(POLL_MS)),
  });
  return { removal, ...spent, ms: performance.now() - startMs - spent.waitedMs };
}
