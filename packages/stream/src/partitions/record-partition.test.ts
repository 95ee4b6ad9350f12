import { expect, it } from 'vitest';
import type { LogPartition } from './log-partition.ts';
import { RecordPartition } from './record-partition.ts';
import { createStreamMetrics } from './stream-metrics.ts';

it('a second drain waits for the batch under way as the first does, and the batch is committed', async () => {
  const commits: number[] = [];
  const log: LogPartition = {
    topic: 'topic',
    partition: 0,
    committed: 0,
    metadata: null,
    start: 0,
    commit: async (offset) => void commits.push(offset),
    batchAt: async () => null,
    firstOffset: async () => 0,
    seek: () => {},
    pause: () => {},
    resume: () => {},
  };
  const handled = Promise.withResolvers<void>();
  const partition = new RecordPartition({
    log,
    handler: { onBatch: () => handled.promise },
    metrics: createStreamMetrics(undefined),
    logger: undefined,
  });
  const place = { topic: 'topic', partition: 0, offset: 0, timestampMs: 0 };
  partition.accept([{ ...place, key: null, value: Buffer.alloc(0), headers: {} }], 1);
  const ended: string[] = [];
  const drains = ['first', 'second'].map((name) => partition.drain(60_000).then(() => void ended.push(name)));
  await new Promise((turn) => setImmediate(turn));
  expect(ended).toEqual([]);
  handled.resolve();
  await Promise.all(drains);
  expect(commits).toEqual([1]);
});
