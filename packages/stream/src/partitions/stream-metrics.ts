import type { Metrics } from '@playline/runtime';

export type RetryStep = 'write' | 'commit' | 'dead-letter' | 'batch' | 'assign';

/** What consumers count. Records are counted when their block is committed, so a block built again counts once. */
export interface StreamMetrics {
  record(topic: string, outcome: { kind: string; reason?: string }, count: number): void;
  block(topic: string, result: 'written' | 'recovered' | 'fenced'): void;
  retry(topic: string, step: RetryStep): void;
  /** Offsets that the log did not have any more, or never had. */
  skipped(topic: string, count: number): void;
  stopped(topic: string, change: 1 | -1): void;
  lag(topic: string, partition: number, records: number): void;
}

const nothing = () => {};
const NO_METRICS: StreamMetrics = {
  record: nothing,
  block: nothing,
  retry: nothing,
  skipped: nothing,
  stopped: nothing,
  lag: nothing,
};
/** Several consumers of a service share its registry, and a registry takes a name once. */
const known = new WeakMap<Metrics, StreamMetrics>();

export function createStreamMetrics(metrics: Metrics | undefined): StreamMetrics {
  if (metrics === undefined) return NO_METRICS;
  const before = known.get(metrics);
  if (before !== undefined) return before;
  const records = metrics.counter('stream_records_total', 'Records taken from the log, by what became of them', [
    'topic',
    'outcome',
    'reason',
  ]);
  const blocks = metrics.counter('stream_blocks_total', 'Blocks written, recovered or dropped by a fence', [
    'topic',
    'result',
  ]);
  const retries = metrics.counter('stream_retries_total', 'Attempts repeated after a fault that passes', [
    'topic',
    'step',
  ]);
  const skipped = metrics.counter('stream_offsets_skipped_total', 'Offsets missing in the log', ['topic']);
  const stopped = metrics.gauge('stream_partitions_stopped', 'Partitions stopped by a permanent fault', ['topic']);
  const lag = metrics.gauge('stream_lag_records', 'Records behind the end of the log', ['topic', 'partition']);
  const created: StreamMetrics = {
    record: (topic, { kind, reason }, count) => records.inc({ topic, outcome: kind, reason: reason ?? '' }, count),
    block: (topic, result) => blocks.inc({ topic, result }),
    retry: (topic, step) => retries.inc({ topic, step }),
    skipped: (topic, count) => skipped.inc({ topic }, count),
    stopped: (topic, change) => stopped.inc({ topic }, change),
    lag: (topic, partition, value) => lag.set({ topic, partition: String(partition) }, value),
  };
  known.set(metrics, created);
  return created;
}
