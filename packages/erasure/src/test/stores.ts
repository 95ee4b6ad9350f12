import { randomBytes } from 'node:crypto';
import { openErasureRecords } from '../clickhouse/index.ts';
import type { FenceEnforcer } from '../fences.ts';
import { hashClosure } from '../maintenance/verify-receipt.ts';
import type { ErasureReceipt, ErasureRecords } from '../records.ts';
import { openMemoryErasureRecords } from './memory/records.ts';
import { type ClickHouseHarness, openClickHouseHarness, openMemoryHarness, type RowsHarness } from './open-rows.ts';
import { T } from './people.ts';

const HOUR_MS = 3_600_000;

export interface ErasureStores {
  readonly harness: RowsHarness;
  readonly records: ErasureRecords;
  close(): Promise<void>;
}

export async function openMemoryStores(): Promise<ErasureStores> {
  const harness = await openMemoryHarness();
  const wallClockMs = () => performance.timeOrigin + performance.now();
  return { harness, records: openMemoryErasureRecords(wallClockMs), close: () => harness.close() };
}

export async function openClickHouseStores(): Promise<ErasureStores & { harness: ClickHouseHarness }> {
  const harness = await openClickHouseHarness();
  const records = openErasureRecords(harness.target);
  const close = async () => {
    await records.close();
    await harness.close();
  };
  return { harness, records, close };
}

export const EMPTY_PEOPLE: FenceEnforcer = { enforce: async () => ({ links: 0, consents: 0 }) };

export interface ErasedPerson {
  readonly environmentId: string;
  readonly keys: readonly Buffer[];
  readonly cutoffMs?: number;
  /** Keys in the request. Default: all. */
  readonly requested?: readonly Buffer[];
  readonly receipt?: Partial<ErasureReceipt>;
}

/** Stores the request and fences of an unfinished erasure. @returns the erasure id */
export async function beginErasure(records: ErasureRecords, person: ErasedPerson): Promise<Buffer> {
  const erasureId = randomBytes(16);
  const { environmentId, keys, cutoffMs = T, requested = keys } = person;
  const times = { cutoffAt: cutoffMs, requestedAt: cutoffMs - 2_000 };
  const named = { subjectKeys: requested.slice(0, 1), memberKeys: requested.slice(1) };
  await records.putRequests([{ erasureId, environmentId, ...named, ...times, traceId: 'a'.repeat(32) }]);
  await records.putFences(keys.map((key) => ({ environmentId, key, cutoffMs, erasureId })));
  return erasureId;
}

export function createReceiptOf(erasureId: Buffer, { environmentId, keys, cutoffMs = T, receipt }: ErasedPerson) {
  const complete: ErasureReceipt = {
    erasureId,
    environmentId,
    closureHash: hashClosure(keys),
    closureCount: keys.length,
    cutoffAt: cutoffMs,
    acceptedAt: cutoffMs - 2_000,
    fencedAt: cutoffMs + 1_000,
    visiblyErasedAt: cutoffMs + 9_000,
    physicallyErasedAt: null,
    logExpiresAt: cutoffMs + 78 * HOUR_MS,
    logExpiredAt: null,
    deleted: { 'clickhouse.events': 1 },
    verified: { 'clickhouse.events': 0 },
    logEnds: { 'audience.messages.v1/0': 10 },
    traceId: 'a'.repeat(32),
    ...receipt,
  };
  return complete;
}

/** Stores the request, fences and receipt of an erasure. @returns the erasure id */
export async function putErased(records: ErasureRecords, person: ErasedPerson): Promise<Buffer> {
  const erasureId = await beginErasure(records, person);
  await records.putReceipts([createReceiptOf(erasureId, person)]);
  return erasureId;
}
