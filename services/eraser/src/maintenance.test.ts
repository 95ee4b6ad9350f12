import { randomBytes } from 'node:crypto';
import type { ErasureReceipt } from '@playline/erasure';
import { openMemoryErasureRecords, openMemoryErasureRows } from '@playline/erasure/memory';
import { openMemoryPeople } from '@playline/people/memory';
import { createLogger } from '@playline/runtime';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { dayOf, type MaintenanceTask, openMaintenance } from './maintenance.ts';

const T = Date.UTC(2026, 5, 15, 1, 0);
const MINUTE_MS = 60_000;

beforeEach(() => void vi.useFakeTimers({ now: T }));
afterEach(() => void vi.useRealTimers());

function openBench() {
  const [people, records, rows] = [openMemoryPeople(), openMemoryErasureRecords(Date.now), openMemoryErasureRows()];
  let rewrites = 0;
  people.rewriteLog = async () => {
    rewrites++;
  };
  const done: MaintenanceTask[] = [];
  const maintenance = openMaintenance({
    records,
    rows,
    people,
    reader: { bounds: async () => [] },
    topicPrefix: '',
    wallClockMs: Date.now,
    schedule: { scrubMinute: 150, removalMinute: 180 },
    logger: createLogger({ service: 'test', level: 'silent' }),
    onSurvivors: () => {},
    onLead: () => {},
    onDone: (work) => done.push(work),
    onFault: (work) => done.push(`fault in ${work}` as MaintenanceTask),
  });
  const countOf = (work: MaintenanceTask) => done.filter((each) => each === work).length;
  return { people, records, rows, maintenance, countOf, countRewrites: () => rewrites };
}

const erasure = () => ({ environmentId: 'env', erasureId: randomBytes(16) });

describe('openMaintenance', () => {
  it('scrub and removal run five minutes after the process starts to lead and then daily', async () => {
    const { maintenance, countOf, countRewrites } = openBench();
    maintenance.lead();
    await vi.advanceTimersByTimeAsync(4 * MINUTE_MS);
    expect([countOf('scrub'), countOf('remove')]).toEqual([0, 0]);
    await vi.advanceTimersByTimeAsync(2 * MINUTE_MS);
    expect([countOf('scrub'), countOf('remove')]).toEqual([1, 1]);
    // Advances to 02:29, past 02:30 and past 03:00.
    await vi.advanceTimersByTimeAsync(83 * MINUTE_MS);
    expect([countOf('scrub'), countOf('remove')]).toEqual([1, 1]);
    await vi.advanceTimersByTimeAsync(2 * MINUTE_MS);
    expect([countOf('scrub'), countOf('remove')]).toEqual([2, 1]);
    await vi.advanceTimersByTimeAsync(30 * MINUTE_MS);
    expect([countOf('scrub'), countOf('remove')]).toEqual([2, 2]);
    await vi.advanceTimersByTimeAsync(24 * 60 * MINUTE_MS);
    expect([countOf('scrub'), countOf('remove')]).toEqual([3, 3]);
    expect(countRewrites()).toBe(3);
    await maintenance.close();
  });

  it('a failed task is retried after half an hour', async () => {
    const { records, maintenance, countOf } = openBench();
    const { readFinished } = records;
    records.readFinished = async () => {
      throw new Error('ClickHouse is unavailable');
    };
    maintenance.lead();
    await vi.advanceTimersByTimeAsync(6 * MINUTE_MS);
    expect(countOf('fault in scrub' as MaintenanceTask)).toBe(1);
    records.readFinished = readFinished;
    await vi.advanceTimersByTimeAsync(28 * MINUTE_MS);
    expect(countOf('scrub')).toBe(0);
    await vi.advanceTimersByTimeAsync(4 * MINUTE_MS);
    expect(countOf('scrub')).toBe(1);
    await maintenance.close();
  });

  it('maintenance starts only once and stops when another process leads', async () => {
    const { maintenance, countOf } = openBench();
    maintenance.lead();
    maintenance.lead();
    await vi.waitFor(() => expect(countOf('tidy')).toBe(1));
    await maintenance.stopLeading();
    await vi.advanceTimersByTimeAsync(60 * MINUTE_MS);
    expect([countOf('tidy'), countOf('scrub')]).toEqual([1, 0]);
  });

  it('close does not wait for a running removal', async () => {
    const { rows, maintenance, countOf } = openBench();
    const started = vi.fn();
    // Simulates a long removal that ends only when the signal is aborted.
    rows.removeDeleted = (signal) => {
      started();
      return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
    };
    maintenance.lead();
    await vi.advanceTimersByTimeAsync(6 * MINUTE_MS);
    expect(started).toHaveBeenCalledOnce();
    await maintenance.close();
    expect([countOf('remove'), countOf('fault in remove' as MaintenanceTask)]).toEqual([0, 0]);
  });

  it('tidy removes only holds and targets of finished erasures', async () => {
    const { people, records, rows, maintenance, countOf } = openBench();
    const [finished, waiting] = [erasure(), erasure()];
    const request = { subjectKeys: [randomBytes(16)], memberKeys: [], cutoffAt: T, requestedAt: T, traceId: '' };
    await records.putRequests([finished, waiting].map((each) => ({ ...each, ...request })));
    await records.putReceipts([{ ...finished, physicallyErasedAt: T, logExpiredAt: T } as unknown as ErasureReceipt]);
    for (const each of [finished, waiting])
      await people.guards.putHold({ ...each, keys: request.subjectKeys, cutoffMs: T, lapsesAtMs: null });
    const [stale, active] = [randomBytes(16), randomBytes(16)];
    for (const batch of [stale, active])
      await rows.putTargets(batch, [{ environmentId: 'env', key: randomBytes(16), cutoffMs: T }]);
    await records.putProgress([{ batchId: active, ...waiting, cutoffAt: T, closureKeys: [], deleted: {} }]);
    maintenance.lead();
    await vi.waitFor(() => expect(countOf('tidy')).toBe(1));
    expect(await people.guards.listHolds('env')).toMatchObject([{ erasureId: waiting.erasureId }]);
    expect(await rows.readBatches()).toEqual([active]);
    await maintenance.close();
  });
});

it('a day starts at the scheduled minute', () => {
  const at = (hour: number, minute: number) => Date.UTC(2026, 5, 15, hour, minute);
  expect(dayOf(at(2, 30), 150) - dayOf(at(2, 29), 150)).toBe(1);
  expect(dayOf(at(23, 59), 150)).toBe(dayOf(at(2, 30), 150));
});
