import type { EventTable } from '@playline/events';
import type { Metrics } from '@playline/runtime';
import type { Outcome } from '@playline/stream';

/** What this service counts itself; records, drops, dead letters, blocks and lag are counted by the stream. */
export interface WriterMetrics {
  /** Call the answer with the number of rows once the store has acknowledged them. */
  startInsert(table: EventTable): (rows: number) => void;
  /** A fault of the store, by the store's own name for it. */
  countFault(table: EventTable, code: string): void;
  /** A record that waited for its schema or for the fences. */
  countDeferred(outcome: Outcome['kind']): void;
  /** An event that was stored without the anonymous id of somebody erased, which it carried. */
  countBlanked(): void;
}

/** From a small block on a calm engine to one that waits for merges. */
const INSERT_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export function createWriterMetrics(metrics: Metrics): WriterMetrics {
  const rowsTotal = metrics.counter('event_writer_rows_total', 'Rows acknowledged by the store', ['table']);
  const blocksTotal = metrics.counter('event_writer_inserts_total', 'Inserts acknowledged by the store', ['table']);
  const seconds = metrics.histogram('event_writer_insert_seconds', 'Time of acknowledged inserts', {
    bucketsSeconds: INSERT_SECONDS,
    labelNames: ['table'],
  });
  const deferredTotal = metrics.counter(
    'event_writer_deferred_total',
    'Records read only when their block was written',
    ['outcome'],
  );
  const faultsTotal = metrics.counter('event_writer_store_faults_total', 'Faults of the store, by its name for them', [
    'table',
    'code',
  ]);
  const blankedTotal = metrics.counter(
    'event_writer_blanked_total',
    'Events stored without the anonymous id of somebody erased, which they carried',
  );
  return {
    countBlanked: () => blankedTotal.inc({}),
    countFault: (table, code) => faultsTotal.inc({ table, code }),
    countDeferred: (outcome) => deferredTotal.inc({ outcome }),
    startInsert(table) {
      const stop = seconds.startTimer({ table });
      return (rows) => {
        stop();
        rowsTotal.inc({ table }, rows);
        blocksTotal.inc({ table });
      };
    },
  };
}
