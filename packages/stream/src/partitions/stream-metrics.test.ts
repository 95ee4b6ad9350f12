import { createMetrics } from '@playline/runtime';
import { afterEach, expect, it, vi } from 'vitest';
import { createStreamMetrics, type PartitionReading } from './stream-metrics.ts';

afterEach(() => void vi.useRealTimers());

async function read(metrics: ReturnType<typeof createMetrics>, name: string) {
  const lines = (await metrics.text()).split('\n').filter((line) => line.startsWith(`${name}{`));
  return lines.map((line) => line.slice(name.length).replace(',service="test"', ''));
}

it('the lag metric contains only the partitions that are assigned during the scrape', async () => {
  const metrics = createMetrics('test');
  let readings: PartitionReading[] = [];
  let refreshed = 0;
  const unwatch = createStreamMetrics(metrics).watch({
    readings: () => readings,
    refresh: async () => void refreshed++,
  });
  readings = [
    { topic: 'a/b', partition: 0, lag: 3 },
    { topic: 'c', partition: 1, lag: 5 },
  ];
  expect(await read(metrics, 'playline_stream_lag_records')).toEqual([
    '{topic="a/b",partition="0"} 3',
    '{topic="c",partition="1"} 5',
  ]);
  readings = [{ topic: 'c', partition: 1, lag: 0 }];
  expect(await read(metrics, 'playline_stream_lag_records')).toEqual(['{topic="c",partition="1"} 0']);
  expect(refreshed).toBe(2);
  unwatch();
  expect(await read(metrics, 'playline_stream_lag_records')).toEqual([]);
});

it('the write age metric contains the oldest write per topic, and omits topics without blocks', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const nowMs = performance.now();
  const metrics = createMetrics('test');
  const watch = createStreamMetrics(metrics).watch;
  watch({
    readings: () => [
      { topic: 'slow', partition: 0, lag: 1, writingSinceMs: nowMs - 7_000 },
      { topic: 'slow', partition: 1, lag: 1, writingSinceMs: nowMs - 1_000 },
      { topic: 'slow', partition: 2, lag: 1, writingSinceMs: null },
      { topic: 'idle', partition: 0, lag: 0, writingSinceMs: null },
    ],
  });
  watch({ readings: () => [{ topic: 'records', partition: 0, lag: 0 }] });
  expect(await read(metrics, 'playline_stream_oldest_write_seconds')).toEqual(['{topic="slow"} 7', '{topic="idle"} 0']);
});

it('the retention metric contains the minimum time per topic until retention may delete a waiting record', async () => {
  const metrics = createMetrics('test');
  const hour = 3_600_000;
  const waitingFor = (hours: number | null) => (hours === null ? null : Date.now() - hours * hour);
  const reading = (topic: string, hours: number | null, retentionMs: number | null = 72 * hour) =>
    ({ topic, partition: 0, lag: 0, oldestUnwrittenMs: waitingFor(hours), retentionMs }) satisfies PartitionReading;
  const readings = [reading('a', 2), reading('a', 70), reading('b', null), reading('forever', 5, null)];
  createStreamMetrics(metrics).watch({ readings: () => [...readings, { topic: 'c', partition: 0, lag: 0 }] });
  expect(await read(metrics, 'playline_stream_retention_left_seconds')).toEqual([
    '{topic="b"} 259200',
    '{topic="a"} 7200',
  ]);
});
