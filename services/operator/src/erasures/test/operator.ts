import { randomBytes } from 'node:crypto';
import { toUuidText } from '@playline/contracts';
import { type ErasureReceipt, type ErasureRecords, hashClosure } from '@playline/erasure';
import { openMemoryErasureRecords, openMemoryErasureRows } from '@playline/erasure/memory';
import { openMemoryPeople } from '@playline/people/memory';
import { createErasuresCommand } from '../../commands/erasures.ts';
import { runInProcess } from '../../test/run-in-process.ts';

export const T = Date.UTC(2026, 5, 15);
export const NOW = T + 26 * 3_600_000;
export const ENVIRONMENT = 'demo-production';
export const newKey = () => randomBytes(16);

export interface Put {
  readonly environmentId?: string;
  readonly keys?: readonly Buffer[];
  readonly requestedAt?: number;
  readonly receipt?: Partial<ErasureReceipt>;
}

export async function put(records: ErasureRecords, { environmentId = ENVIRONMENT, keys = [newKey()], ...rest }: Put) {
  const { requestedAt = T - 2_000, receipt } = rest;
  const erasureId = randomBytes(16);
  const shared = { erasureId, environmentId, cutoffAt: T, traceId: 'c'.repeat(32) };
  await records.putRequests([{ ...shared, subjectKeys: keys, memberKeys: [], requestedAt }]);
  await records.putFences(keys.map((key) => ({ environmentId, key, cutoffMs: T, erasureId })));
  if (receipt !== undefined)
    await records.putReceipts([
      {
        ...shared,
        closureHash: hashClosure(keys),
        closureCount: keys.length,
        acceptedAt: requestedAt,
        fencedAt: T + 1_000,
        visiblyErasedAt: T + 10_000,
        physicallyErasedAt: null,
        logExpiresAt: T + 78 * 3_600_000,
        logExpiredAt: null,
        deleted: { 'clickhouse.events': 12, 'redis.i': 2 },
        verified: { 'clickhouse.events': 0 },
        logEnds: { 'audience.messages.v1/1': 7, 'audience.messages.v1/0': 1_234 },
        ...receipt,
      },
    ]);
  return { erasureId, id: toUuidText(erasureId), keys };
}

export async function createOperator() {
  const records = openMemoryErasureRecords(() => NOW);
  const rows = openMemoryErasureRows();
  const people = openMemoryPeople();
  await people.rebuild.mintEpoch();
  const stop = new AbortController();
  const opened: string[] = [];
  const open = <S>(name: string, store: S) => {
    opened.push(name);
    return store;
  };
  const command = createErasuresCommand({
    openRows: async () => open('rows', rows),
    openRecords: async () => open('records', records),
    openPeople: async () => open('people', people),
    wallClockMs: () => NOW,
    stop: stop.signal,
  });
  const run = async (...args: string[]) => {
    const { code, results, progress } = await runInProcess([command], ['erasures', ...args]);
    return { code, results, text: results.join('\n'), progress };
  };
  return { run, records, rows, people, stop, opened };
}
