import type { Metrics } from '@playline/runtime';
import type { Outcome } from '@playline/stream';

/** What this service counts itself; records, drops, dead letters, blocks, lag and calls of the store are counted by the stream. */
export interface WriterMetrics {
  /** A record that waited for its schema or for the fences. */
  countDeferred(outcome: Outcome['kind']): void;
  /** An event that was stored without the anonymous id of somebody erased, which it carried. */
  countBlanked(): void;
}

export function createWriterMetrics(metrics: Metrics): WriterMetrics {
  const deferredTotal = metrics.counter(
    'event_writer_deferred_total',
    'Records read only when their block was written',
    ['outcome'],
  );
  const blankedTotal = metrics.counter(
    'event_writer_blanked_total',
    'Events stored without the anonymous id of somebody erased, which they carried',
  );
  return {
    countBlanked: () => blankedTotal.inc({}),
    countDeferred: (outcome) => deferredTotal.inc({ outcome }),
  };
}
