import { randomBytes } from 'node:crypto';
import { openMemoryErasureRecords, openMemoryErasureRows } from '@playline/erasure/memory';
import { openMemoryPeople } from '@playline/people/memory';
import { createLogger, createMetrics } from '@playline/runtime';
import type { AssignedPartition, BatchHandler, Consumer } from '@playline/stream';
import { expect, it, vi } from 'vitest';
import { type EraserParts, openEraser } from './pipeline.ts';

async function openBench() {
  const [people, records, rows] = [openMemoryPeople(), openMemoryErasureRecords(Date.now), openMemoryErasureRows()];
  const metrics = createMetrics('test');
  let handler: BatchHandler | null = null;
  let looks = 0;
  const { readProgress } = records;
  records.readProgress = () => {
    looks++;
    return readProgress();
  };
  const consumer = { ready: () => true, hindrances: () => new Map(), close: async () => {} } as unknown as Consumer;
  const eraser = await openEraser({
    people,
    records,
    rows,
    metrics,
    schemaOf: async () => null,
    topicPrefix: '',
    generation: 0,
    ...({ producer: {}, reader: { bounds: async () => [] } } as unknown as Pick<EraserParts, 'producer' | 'reader'>),
    openConsumer: async (given) => {
      handler = given;
      return consumer;
    },
    groups: { linker: 'l', writer: 'w' },
    windowMs: 0,
    batchRequestsMax: 10,
    wallClockMs: Date.now,
    schedule: { scrubMinute: 0, removalMinute: 0 },
    logger: createLogger({ service: 'test', level: 'silent' }),
  });
  const assign = (partition: number) => handler!.onAssign!({ partition, committed: 7 } as AssignedPartition);
  const revoke = (partition: number) => handler!.onRevoke!('erasures', partition);
  return { records, eraser, assign, revoke, metrics, countLooks: () => looks };
}

it('the owner of partition 0 does the batches, also when an earlier assignment ends after the next has begun', async () => {
  const { eraser, assign, revoke, countLooks } = await openBench();
  expect(await assign(3)).toBe(7);
  expect(countLooks()).toBe(0);
  await assign(0);
  await vi.waitFor(() => expect(countLooks()).toBeGreaterThan(1));
  await assign(0);
  revoke(0);
  const before = countLooks();
  await vi.waitFor(() => expect(countLooks()).toBeGreaterThan(before), { timeout: 15_000 });
  revoke(0);
  await eraser.close();
  const atEnd = countLooks();
  await assign(3);
  expect(countLooks()).toBe(atEnd);
});

it('every process reports waiting work when it is asked, whether it leads or not', async () => {
  const { eraser, records, metrics } = await openBench();
  const key = randomBytes(16);
  const requestedAt = Date.now() - 90_000;
  const request = { erasureId: randomBytes(16), environmentId: 'env', subjectKeys: [key], memberKeys: [], traceId: '' };
  await records.putRequests([{ ...request, cutoffAt: requestedAt, requestedAt }]);
  const text = await metrics.text();
  expect(text).toMatch(/playline_eraser_waiting_requests\{[^}]*\} 1\n/);
  expect(Number(/playline_eraser_oldest_unverified_seconds\{[^}]*\} (\d+)/.exec(text)?.[1])).toBeGreaterThanOrEqual(90);
  await eraser.close();
});
