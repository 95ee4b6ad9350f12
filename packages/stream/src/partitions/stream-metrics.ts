import type { Metrics } from '@playline/runtime';

export type RetryStep = 'settle' | 'write' | 'commit' | 'dead-letter' | 'batch' | 'assign';

/** How far the writing of blocks is; its members are absent for workers without blocks. */
export interface BlockReading {
  /** Since when its block is being written, by `performance.now()`; null when none is. */
  readonly writingSinceMs?: number | null;
  /** Epoch milliseconds of the first record that is not written yet; null when none waits. */
  readonly oldestUnwrittenMs?: number | null;
}

/** The present state of one assigned partition. */
export interface PartitionReading extends BlockReading {
  readonly topic: string;
  readonly partition: number;
  /** Records between what is done and the end of the log. */
  readonly lag: number;
  /** How long the log keeps its records; null while that is not known, and when it keeps them for ever. */
  readonly retentionMs?: number | null;
}

/** A running consumer, as far as its metrics need it. */
export interface ReadingSource {
  /** Updates what the next `readings` need, within a bound; never throws. */
  refresh?(): Promise<void>;
  /** The partitions assigned now, and no others. */
  readings(): readonly PartitionReading[];
}

/** What consumers count. Records are counted when their block is committed, so a block built again counts once. */
export interface StreamMetrics {
  record(topic: string, outcome: { kind: string; reason?: string }, count: number): void;
  block(topic: string, result: 'written' | 'recovered' | 'fenced'): void;
  retry(topic: string, step: RetryStep): void;
  /** Offsets that the log no longer had, or never had. */
  skipped(topic: string, count: number): void;
  stopped(topic: string, change: 1 | -1): void;
  /** Asks this consumer whenever the metrics are read. @returns a call that ends it */
  watch(source: ReadingSource): () => void;
}

const nothing = () => {};
const NO_METRICS: StreamMetrics = {
  record: nothing,
  block: nothing,
  retry: nothing,
  skipped: nothing,
  stopped: nothing,
  watch: () => nothing,
};
/** Consumers of one service share its registry, which accepts each name once. */
const known = new WeakMap<Metrics, StreamMetrics>();

export function createStreamMetrics(metrics: Metrics | undefined): StreamMetrics {
  if (metrics === undefined) return NO_METRICS;
  const before = known.get(metrics);
  if (before !== undefined) return before;
  const records = metrics.counter(
    'playline_stream_records_total',
    'Records taken from the log, by what became of them',
    ['topic', 'outcome', 'reason'],
  );
  const blocks = metrics.counter('playline_stream_blocks_total', 'Blocks written, recovered or dropped by a fence', [
    'topic',
    'result',
  ]);
  const retries = metrics.counter('playline_stream_retries_total', 'Attempts repeated after a fault that passes', [
    'topic',
    'step',
  ]);
  const skipped = metrics.counter('playline_stream_offsets_skipped_total', 'Offsets missing in the log', ['topic']);
  const stopped = metrics.gauge('playline_stream_stopped_partitions', 'Partitions stopped by a permanent fault', [
    'topic',
  ]);
  const watch = createReadingGauges(metrics);
  const created: StreamMetrics = {
    record: (topic, { kind, reason }, count) => records.inc({ topic, outcome: kind, reason: reason ?? '' }, count),
    block: (topic, result) => blocks.inc({ topic, result }),
    retry: (topic, step) => retries.inc({ topic, step }),
    skipped: (topic, count) => skipped.inc({ topic }, count),
    stopped: (topic, change) => stopped.inc({ topic }, change),
    watch,
  };
  known.set(metrics, created);
  return created;
}

/**
 * Computed when metrics are read: a value that was set on receipt would stay after the backlog, or the partition, is
 * gone.
 */
function createReadingGauges(metrics: Metrics): StreamMetrics['watch'] {
  const sources = new Set<ReadingSource>();
  const readings = () => [...sources].flatMap((source) => source.readings());
  metrics.collectedGauge(
    'playline_stream_lag_records',
    'Records behind the end of the log, by partition assigned here',
    {
      labelNames: ['topic', 'partition'],
      async collect(gauge) {
        await Promise.all([...sources].map((source) => source.refresh?.()));
        gauge.reset();
        for (const { topic, partition, lag } of readings()) gauge.set({ topic, partition: String(partition) }, lag);
      },
    },
  );
  metrics.collectedGauge('playline_stream_oldest_write_seconds', 'Age of the oldest write of a block that runs', {
    labelNames: ['topic'],
    collect(gauge) {
      gauge.reset();
      for (const [topic, seconds] of oldestWrites(readings())) gauge.set({ topic }, seconds);
    },
  });
  metrics.collectedGauge(
    'playline_stream_retention_left_seconds',
    'Seconds until retention may take a record that waits here',
    {
      labelNames: ['topic'],
      collect(gauge) {
        gauge.reset();
        for (const [topic, hours] of leastHoursLeft(readings())) gauge.set({ topic }, hours * 3600);
      },
    },
  );
  return (source) => {
    sources.add(source);
    return () => sources.delete(source);
  };
}

/** Seconds by topic; 0 where no block is being written. */
function oldestWrites(readings: readonly PartitionReading[]): Map<string, number> {
  const oldest = new Map<string, number>();
  for (const { topic, writingSinceMs } of readings) {
    if (writingSinceMs === undefined) continue;
    const seconds = writingSinceMs === null ? 0 : Math.max(0, performance.now() - writingSinceMs) / 1_000;
    oldest.set(topic, Math.max(seconds, oldest.get(topic) ?? 0));
  }
  return oldest;
}

/** For each topic the hours of the partition that has the fewest; the whole retention where nothing waits. */
function leastHoursLeft(readings: readonly PartitionReading[]): Map<string, number> {
  const least = new Map<string, number>();
  for (const { topic, oldestUnwrittenMs, retentionMs } of readings) {
    if (oldestUnwrittenMs === undefined || retentionMs == null) continue;
    const hours = hoursLeft(oldestUnwrittenMs ?? Date.now(), retentionMs);
    least.set(topic, Math.min(hours, least.get(topic) ?? Number.POSITIVE_INFINITY));
  }
  return least;
}

const HOUR_MS = 3_600_000;
/** With less than a day left somebody must be alerted: repairing a store may take a night and a morning. */
export const ALARM_HOURS = 24;

/**
 * Hours until retention may take a record; negative when that time has passed. To one decimal: Kafka deletes whole
 * segments, so a record disappears some hours later than that, never earlier. By the wall clock, as retention is.
 */
export function hoursLeft(timestampMs: number, retentionMs: number): number {
  const goneAtMs = timestampMs + retentionMs;
  const readAtMs = Date.now();
  return Math.round(((goneAtMs - readAtMs) / HOUR_MS) * 10) / 10;
}
