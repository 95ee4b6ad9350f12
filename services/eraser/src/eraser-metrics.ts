import type { ErasureReceipt } from '@playline/erasure';
import type { Metrics } from '@playline/runtime';
import { waitAtMost } from '@playline/stores';
import type { MaintenanceTask } from './maintenance.ts';
import type { Step } from './steps/erase-batch.ts';

/** Unfinished erasures. Times are epoch milliseconds. */
export interface WaitingWork {
  readonly requests: number;
  /** Acceptance time of the oldest request without a receipt. */
  readonly oldestAt: number | null;
  readonly holdsOverAnHour: number;
}

export type EraserMetrics = ReturnType<typeof createEraserMetrics>;

/** Read on every scrape. */
export interface WaitingSource {
  /** @throws store faults */
  readWaiting(): Promise<WaitingWork>;
  readonly wallClockMs: () => number;
}

const SECONDS = [5, 10, 15, 20, 30, 45, 60, 120, 300, 900, 3_600, 86_400];
const MS_PER_SECOND = 1_000;
const RESPONSE_MAX_MS = 2_000;

export function createEraserMetrics(metrics: Metrics, waiting: WaitingSource) {
  watchWaiting(metrics, waiting);
  const recordMaintenance = watchMaintenance(metrics);
  const requests = metrics.counter('playline_eraser_requests_total', 'Erasures whose receipt was stored');
  const erased = metrics.histogram('playline_eraser_erasure_duration_seconds', 'Time until no query finds a row', {
    bucketsSeconds: SECONDS,
  });
  const batches = metrics.histogram('playline_eraser_batch_duration_seconds', 'Duration of completed batches', {
    bucketsSeconds: SECONDS,
  });
  const handovers = metrics.counter('playline_eraser_handovers_total', 'Work stops because another process leads');
  const faults = metrics.counter('playline_eraser_faults_total', 'Failed attempts', ['during']);
  const survivors = metrics.counter('playline_eraser_survivors_total', 'Erased rows found by scrubs', ['table']);
  const republishLater = metrics.counter(
    'playline_eraser_links_put_back_total',
    'Links later than the cut-off that were republished',
  );
  const fenceRestores = metrics.counter('playline_eraser_fence_restores_total', 'Fence restorations in Redis');
  const deferred = new Set<string>();
  const help = 'Erasures that cannot be resolved and are retried alone';
  metrics.collectedGauge('playline_eraser_deferred_requests', help, { collect: (gauge) => gauge.set(deferred.size) });
  return {
    /** Ids of deferred requests. */
    deferred,
    /** Resets the age of a maintenance task. */
    recordMaintenance,
    countFenceRestore: () => fenceRestores.inc(),
    /** Starts a batch timer. Call the returned function with the batch's receipts. */
    startBatch() {
      const stop = batches.startTimer();
      return (receipts: readonly ErasureReceipt[]) => {
        stop();
        requests.inc(receipts.length);
        for (const { acceptedAt, visiblyErasedAt } of receipts)
          erased.observe(secondsBetween(acceptedAt, visiblyErasedAt));
      };
    },
    countHandover: () => handovers.inc(),
    countFault: (during: Step | 'take' | MaintenanceTask) => faults.inc({ during }),
    countSurvivors: (table: string, rows: number) => survivors.inc({ table }, rows),
    countRepublished: (links: number) => republishLater.inc(links),
  };
}

export function secondsBetween(fromAt: number | null, untilAt: number): number {
  return fromAt === null ? 0 : Math.max(0, untilAt - fromAt) / MS_PER_SECOND;
}

/** Every process reports waiting work, even if it does not lead. */
function watchWaiting(metrics: Metrics, source: WaitingSource): void {
  const read = createWaitingReader(source);
  const gauge = (name: string, help: string, toValue: (waiting: WaitingWork) => number) =>
    metrics.collectedGauge(name, help, { collect: async (gauge) => gauge.set(toValue(await read())) });
  gauge('playline_eraser_waiting_requests', 'Erasures without a receipt', ({ requests }) => requests);
  gauge('playline_eraser_oldest_unverified_seconds', 'Age of the oldest erasure without a receipt', ({ oldestAt }) =>
    secondsBetween(oldestAt, source.wallClockMs()),
  );
  const help = 'Holds of erasures accepted more than an hour ago';
  gauge('playline_eraser_holds_over_an_hour', help, ({ holdsOverAnHour }) => holdsOverAnHour);
}

/** Shares one read between all gauges. While a store does not respond, the last result is used. */
function createWaitingReader({ readWaiting }: WaitingSource): () => Promise<WaitingWork> {
  let last: WaitingWork = { requests: 0, oldestAt: null, holdsOverAnHour: 0 };
  let running: Promise<WaitingWork> | null = null;
  const read = async () => {
    const reading = readWaiting().catch(() => null);
    last = (await waitAtMost(RESPONSE_MAX_MS, reading, () => null)) ?? last;
    running = null;
    return last;
  };
  return () => {
    running ??= read();
    return running;
  };
}

function watchMaintenance(metrics: Metrics): (work: MaintenanceTask) => void {
  const doneMs = new Map<MaintenanceTask, number>();
  metrics.collectedGauge('playline_eraser_upkeep_age_seconds', 'Time since the last completion or takeover', {
    labelNames: ['work'],
    collect: (gauge) => {
      for (const [work, ms] of doneMs) gauge.set({ work }, (performance.now() - ms) / MS_PER_SECOND);
    },
  });
  return (work) => void doneMs.set(work, performance.now());
}
