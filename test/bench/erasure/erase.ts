import { type ErasureReceipt, type ErasureRecords, type ErasureRows, LOG_EXPIRES_AFTER_MS } from '@playline/erasure';
import { createEngine, type Engine } from '../clickhouse.ts';
import type { Bench, Range } from '../figure.ts';
import { waitFor } from '../processes.ts';
import type { Server } from '../services.ts';
import { countRowsOf, type People } from './people.ts';

export interface Scene {
  readonly bench: Bench;
  readonly server: Server;
  readonly rows: ErasureRows;
  readonly records: ErasureRecords;
  readonly people: People;
}

export interface Erased {
  readonly receipts: readonly ErasureReceipt[];
  readonly events: number;
  readonly acceptedMs: number;
  readonly cpuMs: number;
  readonly readBytes: number;
}

/** Concurrent requests. With these, a thousand are accepted within a second or two. */
const CONNECTIONS = 32;
const RECEIPTS_MAX_MS = 600_000;

/**
 * Requests the erasure of people, all together, and waits for their receipts.
 * @throws Error when a query finds anything of them afterwards, or when the receipts have another number of rows
 */
export async function eraseRange({ bench, server, records, people }: Scene, range: Range): Promise<Erased> {
  const engine = createEngine(bench);
  const { events, other } = await countRowsOf(engine, range);
  if (events === 0 || other === 0) throw new Error(`no one to erase: ${events} events, ${other} other rows`);
  const before = await readCost(engine);
  const { erasureIds, acceptedMs } = await requestErasures(bench, server, { people, range });
  await waitForReceipts(engine, erasureIds);
  const left = await countRowsOf(engine, range);
  if (left.events + left.other > 0) throw new Error(`rows found after the receipts: ${JSON.stringify(left)}`);
  const after = await readCost(engine);
  const ids = new Set([...erasureIds].map((id) => id.replaceAll('-', '')));
  const receipts = (await records.readOpenReceipts()).filter(({ erasureId }) => ids.has(erasureId.toString('hex')));
  const deleted = receipts.reduce((sum, receipt) => sum + (receipt.deleted['clickhouse.events'] ?? 0), 0);
  if (deleted !== events) throw new Error(`the receipts report ${deleted} events, there were ${events}`);
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
      const answer = await fetch(target, { method: 'DELETE', headers: { 'x-service-api-key': secretKey } });
      if (answer.status !== 202) throw new Error(`an erasure was answered with ${answer.status}`);
      erasureIds.add(answer.headers.get('x-erasure-id') ?? '');
    }
  };
  await Promise.all(Array.from({ length: Math.min(CONNECTIONS, count) }, send));
  return { erasureIds, acceptedMs: performance.now() - startMs };
}

/** Waits until each erasure has its receipt and no batch is in progress. Its queries are not logged. */
async function waitForReceipts(engine: Engine, erasureIds: ReadonlySet<string>): Promise<void> {
  const count = (sql: string) => engine.queryNumber(`${sql} SETTINGS log_queries = 0`);
  const receipts = `SELECT uniqExact(erasure_id) FROM erasure_receipts WHERE erasure_id IN (
    SELECT arrayJoin(JSONExtract('${JSON.stringify([...erasureIds])}', 'Array(UUID)')))`;
  const areThere = async () => (await count(receipts)) === erasureIds.size;
  await waitFor(`${erasureIds.size} receipts`, areThere, { maxMs: RECEIPTS_MAX_MS });
  const isOver = async () => (await count('SELECT count() FROM erasure_progress')) === 0;
  await waitFor('no batch is in progress', isOver, { maxMs: RECEIPTS_MAX_MS });
}

/** Statements of an eraser. Reads of fences do not count, because writers read them too. */
const OF_ERASERS = `match(query, 'erasure_|system\\\\.mutations|system\\\\.processes')
  AND NOT (query_kind = 'Select' AND position(query, 'erasure_fences') > 0)`;

/**
 * Cost of erasures so far: their statements and their mutations. Bytes are decompressed, because ClickHouse counts every
 * seek in a compact part as a whole buffer of file reads.
 */
async function readCost(engine: Engine): Promise<{ cpuMs: number; readBytes: number }> {
  await engine.query('SYSTEM FLUSH LOGS query_log, part_log');
  const sums = `sum(ProfileEvents['OSCPUVirtualTimeMicroseconds']) AS cpu, sum(ProfileEvents['CompressedReadBufferBytes']) AS bytes`;
  const [cpu = Number.NaN, readBytes = Number.NaN] = await engine.queryNumbers(
    `SELECT sum(cpu), sum(bytes) FROM (
       SELECT ${sums} FROM system.query_log
       WHERE type != 'QueryStart' AND current_database = currentDatabase() AND ${OF_ERASERS}
       UNION ALL SELECT ${sums} FROM system.part_log WHERE database = currentDatabase() AND event_type = 'MutatePart')
     FORMAT TSV SETTINGS log_queries = 0`,
  );
  return { cpuMs: cpu / 1_000, readBytes };
}

export interface Phases {
  /** From the acceptance of the request until no query finds a row. */
  readonly all: number;
  /** Until the fence is in force; until the log before the fence is stored; the rest. */
  readonly fenced: number;
  readonly stored: number;
  readonly swept: number;
}

export function phasesOf({ acceptedAt, fencedAt, visiblyErasedAt, logExpiresAt }: ErasureReceipt): Phases {
  const storedAt = logExpiresAt - LOG_EXPIRES_AFTER_MS;
  return {
    all: visiblyErasedAt - acceptedAt,
    fenced: fencedAt - acceptedAt,
    stored: storedAt - fencedAt,
    swept: visiblyErasedAt - storedAt,
  };
}
