import type { Metrics } from '@playline/runtime';
import { StoreFault } from '@playline/stores';
import { OversizeFault, RetryableFault } from '../ports.ts';

/** Counts calls of a store of rows, and turns their faults into those that block consumers understand. */
export interface StoreCalls {
  /** Runs an insert. @param rows counted once the store has acknowledged them */
  insert(table: string, rows: number, work: () => Promise<void>): Promise<void>;
  /** Runs a query. */
  ask<T>(table: string, work: () => Promise<T>): Promise<T>;
}

/** From a small block on an idle engine to one that waits for merges. */
const INSERT_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/**
 * Counts rows, inserts, their duration and their faults by table. A `StoreFault` becomes what the block protocol
 * expects: try again, try again with fewer rows, or the fault itself, which stops the partition.
 * @param prefix before the names of the metrics: `event_writer` gives `event_writer_rows_total`
 */
export function createStoreCalls(metrics: Metrics, prefix: string): StoreCalls {
  const rowsTotal = metrics.counter(`${prefix}_rows_total`, 'Rows acknowledged by the store', ['table']);
  const insertsTotal = metrics.counter(`${prefix}_inserts_total`, 'Inserts acknowledged by the store', ['table']);
  const seconds = metrics.histogram(`${prefix}_insert_seconds`, 'Time of acknowledged inserts', {
    bucketsSeconds: INSERT_SECONDS,
    labelNames: ['table'],
  });
  const faultsTotal = metrics.counter(`${prefix}_store_faults_total`, 'Faults of the store, by its name for them', [
    'table',
    'code',
  ]);
  const ask: StoreCalls['ask'] = async (table, work) => {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof StoreFault)) throw error;
      faultsTotal.inc({ table, code: error.code });
      throw toStreamFault(error);
    }
  };
  return {
    ask,
    insert: (table, rows, work) =>
      ask(table, async () => {
        const stop = seconds.startTimer({ table });
        await work();
        stop();
        rowsTotal.inc({ table }, rows);
        insertsTotal.inc({ table });
      }),
  };
}

function toStreamFault(fault: StoreFault): Error {
  if (fault.kind === 'final') return fault;
  const Fault = fault.kind === 'oversize' ? OversizeFault : RetryableFault;
  return new Fault(fault.message, { cause: fault });
}
