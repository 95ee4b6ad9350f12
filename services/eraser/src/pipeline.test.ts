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
  let polls = 0;
  // Failed polls are retried sooner than polls that find no work.
  records.readProgress = async () => {
    polls++;
    throw new Error('the store is unavailable');
  };
  const consumer = { ready: () => true, blockers: () => new Map(), close: async () => {} } as unknown as Consumer;
  const eraser = await openEraser({
    tracing: null,
    people,
    records,
    rows,
    metrics,
    schemaOf: async () => null,
    topicPrefix: '',
    generation: 0,
    ...({ producer: {}, reader: { bounds: async () => [] } } as unknown as Pick<EraserParts, 'producer' | 'reader'>),
    openConsumer: async (batchHandler) => {
      handler = batchHandler;
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
  return { records, eraser, assign, revoke, metrics, countPolls: () => polls };
}

it('the owner of partition 0 leads, even if an earlier assignment is revoked after the next assignment', async () => {
  const { eraser, assign, revoke, countPolls } = await openBench();
  expect(await assign(3)).toBe(7);
  expect(countPolls()).toBe(0);
  await assign(0);
  await vi.waitFor(() => expect(countPolls()).toBeGreaterThan(1));
  await assign(0);
  revoke(0);
  const before = countPolls();
  await vi.waitFor(() => expect(countPolls()).toBeGreaterThan(before), { timeout: 15_000 });
  revoke(0);
  await eraser.close();
  const atEnd = countPolls();
  await assign(3);
  expect(countPolls()).toBe(atEnd);
});

it('every process reports waiting work, even if it does not lead', async () => {
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
