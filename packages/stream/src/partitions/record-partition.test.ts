import { createMetrics } from '@playline/runtime';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { RetryableFault } from '../ports.ts';
import { captureLogs, fakeLog, NO_WAITS, toRecords } from '../test/fake-log.ts';
import { RecordPartition } from './record-partition.ts';
import { createStreamMetrics } from './stream-metrics.ts';

it('every drain of a record partition waits for the current batch, which is then committed', async () => {
  const commits: number[] = [];
  const handled = Promise.withResolvers<void>();
  const partition = new RecordPartition({
    log: fakeLog({ commit: async (offset) => void commits.push(offset) }),
    handler: { onBatch: () => handled.promise },
    metrics: createStreamMetrics(undefined),
    logger: undefined,
  });
  partition.accept(toRecords(['']), 1);
  const ended: string[] = [];
  const drains = ['first', 'second'].map((name) => partition.drain(60_000).then(() => void ended.push(name)));
  await new Promise((resolve) => setImmediate(resolve));
  expect(ended).toEqual([]);
  handled.resolve();
  await Promise.all(drains);
  expect(commits).toEqual([1]);
});

it('a record partition logs each reason for a failed start or batch once and counts every attempt', async () => {
  const { logger, lines } = captureLogs();
  const metrics = createMetrics('test');
  const faults = ['no epoch', 'no epoch', 'no connection'];
  const failNext = (remaining: string[]) => {
    const reason = remaining.shift();
    if (reason !== undefined) throw new RetryableFault(reason);
  };
  const onAssign = async ({ committed }: { committed: number }) => {
    failNext(faults);
    return committed;
  };
  const batchFaults = ['busy', 'busy'];
  const handler = { onAssign, onBatch: async () => failNext(batchFaults) };
  const streamMetrics = createStreamMetrics(metrics);
  const worker = new RecordPartition({ log: fakeLog(), handler, logger, metrics: streamMetrics, waits: NO_WAITS });
  await until('the batch is handled', () => {
    worker.accept(toRecords(['row']), 1);
    return worker.done === 1;
  });
  const reasons = lines.map(({ msg, error, reason }) => [msg, (error as Error | undefined)?.message ?? reason]);
  expect(reasons).toEqual([
    ['cannot get start offset; retrying', 'no epoch'],
    ['cannot get start offset; retrying', 'no connection'],
    ['cannot handle batch; retrying', 'busy'],
  ]);
  const text = await metrics.text();
  expect(text).toContain('playline_stream_retries_total{topic="topic",step="assign",service="test"} 3');
  expect(text).toContain('playline_stream_retries_total{topic="topic",step="batch",service="test"} 2');
  worker.end();
});
