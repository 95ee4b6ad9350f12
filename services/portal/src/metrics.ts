import type { Metrics } from '@playline/runtime';
import type { QueryRows } from '@playline/stores';
import type { AuditedAction, WriteAudit } from './write-audit.ts';

const QUERY_BUCKETS_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Measures queries until their last row is read. A query whose reader stopped or disconnected is `cancelled`. */
export function measureQueries(metrics: Pick<Metrics, 'histogram'>, query: QueryRows): QueryRows {
  const durations = metrics.histogram('playline_portal_query_duration_seconds', 'Duration of ClickHouse queries', {
    bucketsSeconds: QUERY_BUCKETS_S,
    labelNames: ['outcome'],
  });
  return async function* measured(sql, options = {}) {
    const startedMs = performance.now();
    let outcome = 'cancelled';
    try {
      yield* query(sql, options);
      outcome = 'completed';
    } catch (error) {
      if (options.signal?.aborted !== true) outcome = 'failed';
      throw error;
    } finally {
      durations.observe({ outcome }, (performance.now() - startedMs) / 1000);
    }
  };
}

/** Counts audited actions, which include sign-ins and refused sign-ins. */
export function countActions(metrics: Pick<Metrics, 'counter'>, writeAudit: WriteAudit): WriteAudit {
  const actions = metrics.counter<'action'>(
    'playline_portal_actions_total',
    'Audited actions that do not change a record, such as sign-ins',
    ['action'],
  );
  return (visit, event) => {
    actions.inc({ action: event.action satisfies AuditedAction });
    return writeAudit(visit, event);
  };
}

/** @param subscribers returns the number of open live pages */
export function watchLive(metrics: Pick<Metrics, 'collectedGauge'>, subscribers: () => number): void {
  metrics.collectedGauge('playline_portal_live_pages', 'Open live pages', {
    collect: (gauge) => gauge.set(subscribers()),
  });
}
