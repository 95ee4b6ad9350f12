import type { Metrics } from '@playline/runtime';

/** What this service counts itself; records, blocks, lag and calls of the store are counted by the stream. */
export interface WriterMetrics {
  /** Records that turned out to be dead letters only when their block was written. */
  countRefused(count: number): void;
  /** Called with each watermark that is published. */
  setWatermark(partition: number, us: number): void;
}

export function createWriterMetrics(metrics: Metrics): WriterMetrics {
  const refusedTotal = metrics.counter(
    'activity_writer_refused_total',
    'Records that became dead letters when their block was written',
  );
  const watermark = metrics.gauge(
    'activity_writer_watermark_seconds',
    'Up to where a partition is known, seconds since the epoch',
    ['partition'],
  );
  return {
    countRefused: (count) => refusedTotal.inc({}, count),
    setWatermark: (partition, us) => watermark.set({ partition: String(partition) }, us / 1_000_000),
  };
}
