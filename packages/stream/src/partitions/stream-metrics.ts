import type { Metrics } from '@playline/runtime';

export type RetryStep = 'settle' | 'write' | 'commit' | 'dead-letter' | 'batch' | 'assign';

/** Progress of block writes. Missing for workers without blocks. */
export interface BlockReading {
  /** When the current write started, from `performance.now()`; null if there is none. */
  readonly writingSinceMs?: number | null;
  /** Time of the first unwritten record in epoch milliseconds; null if no record is waiting. */
  readonly oldestUnwrittenMs?: number | null;
}

export interface PartitionReading extends BlockReading {
  readonly topic: string;
  readonly partition: number;
  readonly lag: number;
  /** The topic's retention; null if it is unknown or unlimited. */
  readonly retentionMs?: number | null;
}

export interface ReadingSource {
  /** Updates the result of `readings` within a time limit. Never throws. */
  refresh?(): Promise<void>;
  readings(): readonly PartitionReading[];
}

/** Records are counted when their block is committed, so that the records of a rebuilt block are counted once. */
export interface StreamMetrics {
  record(topic: string, outcome: { kind: string; reason?: string }, count: number): void;
  block(topic: string, result: 'written' | 'recovered' | 'fenced'): void;
  retry(topic: string, step: RetryStep): void;
  /** Counts offsets that are missing from the log. */
  skipped(topic: string, count: number): void;
  stopped(topic: string, change: 1 | -1): void;
  /** Reads a consumer on every scrape. @returns a function that stops reading the consumer */
  watch(source: ReadingSource): () => void;
}

const noop = () => {};
const noCounts = { record: noop, block: noop, retry: noop, skipped: noop, stopped: noop };
const NO_METRICS: StreamMetrics = { ...noCounts, watch: () => noop };
/** The consumers in one service share a metrics registry, which accepts each metric name only once. */
const metricsByRegistry = new WeakMap<Metrics, StreamMetrics>();

export function createStreamMetrics(metrics: Metrics | undefined): StreamMetrics {
  if (metrics === undefined) return NO_METRICS;
  const existing = metricsByRegistry.get(metrics);
  if (existing !== undefined) return existing;
  const counter = <L extends string>(name: string, help: string, labels: readonly L[]) =>
    metrics.counter(name, help, ['topic', ...labels]);
  const records = counter('playline_stream_records_total', 'Records read from the log, by outcome', [
    'outcome',
    'reason',
  ]);
  const blocks = counter('playline_stream_blocks_total', 'Blocks written, recovered or dropped by a fence', ['result']);
  const retries = counter('playline_stream_retries_total', 'Retries after a temporary fault', ['step']);
  const skipped = counter('playline_stream_offsets_skipped_total', 'Offsets missing in the log', []);
  const help = 'Partitions paused by a permanent fault';
  const stopped = metrics.gauge('playline_stream_stopped_partitions', help, ['topic']);
  const created: StreamMetrics = {
    record: (topic, { kind, reason }, count) => records.inc({ topic, outcome: kind, reason: reason ?? '' }, count),
    block: (topic, result) => blocks.inc({ topic, result }),
    retry: (topic, step) => retries.inc({ topic, step }),
    skipped: (topic, count) => skipped.inc({ topic }, count),
    stopped: (topic, change) => stopped.inc({ topic }, change),
    watch: createReadingGauges(metrics),
  };
  metricsByRegistry.set(metrics, created);
  return created;
}

/** Computed on every scrape, because a stored value would outlive its backlog or partition. */
function createReadingGauges(metrics: Metrics): StreamMetrics['watch'] {
  const sources = new Set<ReadingSource>();
  const readings = () => [...sources].flatMap((source) => source.readings());
  metrics.collectedGauge('playline_stream_lag_records', 'Unprocessed records in the log, by assigned partition', {
    labelNames: ['topic', 'partition'],
    async collect(gauge) {
      await Promise.all([...sources].map((source) => source.refresh?.()));
      gauge.reset();
      for (const { topic, partition, lag } of readings()) gauge.set({ topic, partition: String(partition) }, lag);
    },
  });
  const gauge = (name: string, help: string, measure: (reading: PartitionReading) => number | null, order: 1 | -1) =>
    metrics.collectedGauge(name, help, {
      labelNames: ['topic'],
      collect(target) {
        target.reset();
        const values = readings().map((reading) => ({ topic: reading.topic, value: measure(reading) }));
        // The last value per topic is reported.
        const sorted = values.toSorted((a, b) => order * ((a.value ?? 0) - (b.value ?? 0)));
        for (const { topic, value } of sorted) if (value !== null) target.set({ topic }, value);
      },
    });
  gauge('playline_stream_oldest_write_seconds', 'Age of the oldest block write in progress', writeSeconds, 1);
  gauge(
    'playline_stream_retention_left_seconds',
    'Seconds until retention may delete a waiting record',
    secondsLeft,
    -1,
  );
  return (source) => {
    sources.add(source);
    return () => sources.delete(source);
  };
}

/** Returns the seconds since the current write started: 0 without a write, null for a worker without blocks. */
function writeSeconds({ writingSinceMs }: PartitionReading): number | null {
  if (writingSinceMs === undefined) return null;
  return writingSinceMs === null ? 0 : Math.max(0, performance.now() - writingSinceMs) / 1_000;
}

/** Returns the seconds until the first waiting record expires: the full retention if none waits, null if unknown. */
function secondsLeft({ oldestUnwrittenMs, retentionMs }: PartitionReading): number | null {
  if (oldestUnwrittenMs === undefined || retentionMs == null) return null;
  return hoursLeft(oldestUnwrittenMs ?? Date.now(), retentionMs) * 3600;
}

const HOUR_MS = 3_600_000;
/** Enough time to repair a store that fails in the evening. */
export const ALARM_HOURS = 24;

/**
 * Returns the hours until retention may delete a record, rounded to one decimal and negative if overdue. Uses the
 * system clock, like retention. Kafka deletes whole segments, so the deletion may happen some hours later.
 */
export function hoursLeft(timestampMs: number, retentionMs: number): number {
  const readAtMs = Date.now();
  return Math.round(((timestampMs + retentionMs - readAtMs) / HOUR_MS) * 10) / 10;
}
