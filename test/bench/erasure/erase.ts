import type { ErasureReceipt, ErasureRecords, ErasureRows } from '@playline/erasure';
import { createEngine } from '../clickhouse.ts';
import type { Bench } from '../figure.ts';
import { readCost } from './cost.ts';
import { countRowsOf, type People, type Range } from './people.ts';
import { awaitReceipts, requestErasures } from './requests.ts';
import type { Stack } from './stack.ts';

/** What a measurement works with. */
export interface Scene {
  readonly bench: Bench;
  readonly stack: Stack;
  readonly rows: ErasureRows;
  readonly records: ErasureRecords;
  readonly people: People;
}

/** People who were erased together, and the cost. */
export interface Erased {
  readonly receipts: readonly ErasureReceipt[];
  /** Number of their rows in `events`. */
  readonly events: number;
  /** Duration from the first request until the last was accepted. */
  readonly askedMs: number;
  /** CPU time of ClickHouse. */
  readonly cpuMs: number;
  readonly readBytes: number;
}

/**
 * Requests the erasure of people, all at once, and waits for their receipts.
 * @throws Error when a query finds anything of them afterwards, or when a receipt has another number of rows
 */
export async function eraseSome({ bench, stack, records, people }: Scene, range: Range): Promise<Erased> {
  const engine = createEngine(bench);
  const { events, other } = await countRowsOf(engine, range);
  if (events === 0 || other === 0) throw new Error(`nobody to erase: ${events} events, ${other} other rows`);
  const before = await readCost(engine, bench.database);
  const asked = await requestErasures({ server: stack.server, bench, people }, range);
  await awaitReceipts(engine, asked);
  const left = await countRowsOf(engine, range);
  if (left.events + left.other > 0) throw new Error(`found behind the receipts: ${JSON.stringify(left)}`);
  const after = await readCost(engine, bench.database);
  const ids = new Set([...asked.erasureIds].map((id) => id.replaceAll('-', '')));
  const receipts = (await records.readOpenReceipts()).filter(({ erasureId }) => ids.has(erasureId.toString('hex')));
  const told = receipts.reduce((sum, { deleted }) => sum + (deleted['clickhouse.events'] ?? 0), 0);
  if (told !== events) throw new Error(`receipts tell of ${told} events, there were ${events}`);
  const cost = { cpuMs: after.cpuMs - before.cpuMs, readBytes: after.readBytes - before.readBytes };
  return { receipts, events, askedMs: asked.ms, ...cost };
}
