import type { ErasureReceipt } from '@playline/erasure';
import type { Metrics } from '@playline/runtime';
import { waitAtMost } from '@playline/stores';
import type { Step } from './steps/erase-batch.ts';
import type { UpkeepWork } from './upkeep.ts';

/** Work that waits, as last read from the stores; times are epoch milliseconds. */
export interface Waiting {
  readonly requests: number;
  /** When the oldest request without a receipt was accepted; null when there is none. */
  readonly oldestAt: number | null;
  readonly holdsOverAnHour: number;
}

export interface EraserMetrics {
  /** Starts the time of a batch. Call the returned function with its receipts. */
  startBatch(): (receipts: readonly ErasureReceipt[]) => void;
  /** Counts work that stopped because another process leads. */
  countHandover(): void;
  countFault(during: Step | 'take' | UpkeepWork): void;
  /** Notes that work of the upkeep was done, or that its age is measured from now on. */
  noteUpkeep(work: UpkeepWork): void;
  /** Counts rows that a scrub found although they should have been erased. */
  countSurvivors(table: string, rows: number): void;
  countPutBack(links: number): void;
  countFenceRestore(): void;
  /** Ids of requests that cannot be resolved. Their number is a metric. */
  readonly aside: Set<string>;
}

/** Reads the waiting work; called at every scrape. */
export interface WaitingSource {
  /** @throws whatever the stores throw */
  readWaiting(): Promise<Waiting>;
  readonly wallClockMs: () => number;
}

/** From a single request on an idle stack to a whole day. */
const SECONDS = [5, 10, 15, 20, 30, 45, 60, 120, 300, 900, 3_600, 86_400];
const MS_A_SECOND = 1_000;
/** A scraper of metrics waits only some seconds. */
const ANSWER_MAX_MS = 2_000;

export function createEraserMetrics(metrics: Metrics, waiting: WaitingSource): EraserMetrics {
  watchWaiting(metrics, waiting);
  const noteUpkeep = watchUpkeep(metrics);
  const requests = metrics.counter('playline_eraser_requests_total', 'Erasures that got their receipt');
  const erased = metrics.histogram(
    'playline_eraser_erasure_duration_seconds',
    'From the request to the moment when no query finds a row',
    {
      bucketsSeconds: SECONDS,
    },
  );
  const batches = metrics.histogram('playline_eraser_batch_duration_seconds', 'Time of batches that were finished', {
    bucketsSeconds: SECONDS,
  });
  const handovers = metrics.counter(
    'playline_eraser_handovers_total',
    'Times that work under way stopped because another process leads',
  );
  const faults = metrics.counter('playline_eraser_faults_total', 'Attempts that failed and are done again', ['during']);
  const survivors = metrics.counter(
    'playline_eraser_survivors_total',
    'Rows that were found although they were erased',
    ['table'],
  );
  const putBack = metrics.counter('playline_eraser_links_put_back_total', 'Later links that were published again');
  const fenceRestores = metrics.counter(
    'playline_eraser_fence_restores_total',
    'Times that all fences were set again because Redis was restarted or promoted',
  );
  const aside = new Set<string>();
  metrics.collectedGauge(
    'playline_eraser_deferred_requests',
    'Erasures that cannot be resolved and are retried alone',
    {
      collect: (gauge) => gauge.set(aside.size),
    },
  );
  return {
    aside,
    noteUpkeep,
    countFenceRestore: () => fenceRestores.inc(),
    startBatch() {
      const stop = batches.startTimer();
      return (receipts) => {
        stop();
        requests.inc(receipts.length);
        for (const { acceptedAt, visiblyErasedAt } of receipts)
          erased.observe(secondsBetween(acceptedAt, visiblyErasedAt));
      };
    },
    countHandover: () => handovers.inc(),
    countFault: (during) => faults.inc({ during }),
    countSurvivors: (table, rows) => survivors.inc({ table }, rows),
    countPutBack: (links) => putBack.inc(links),
  };
}

/** Seconds between two times in epoch milliseconds. */
export function secondsBetween(fromAt: number | null, untilAt: number): number {
  return fromAt === null ? 0 : Math.max(0, untilAt - fromAt) / MS_A_SECOND;
}

/** Registers the gauges of waiting work. Every process reports them, also one that does not lead. */
function watchWaiting(metrics: Metrics, source: WaitingSource): void {
  const read = createWaitingReader(source);
  metrics.collectedGauge('playline_eraser_waiting_requests', 'Erasures that were accepted and have no receipt', {
    collect: async (gauge) => gauge.set((await read()).requests),
  });
  metrics.collectedGauge(
    'playline_eraser_oldest_unverified_seconds',
    'Age of the oldest erasure without a receipt; 0 without any',
    { collect: async (gauge) => gauge.set(secondsBetween((await read()).oldestAt, source.wallClockMs())) },
  );
  metrics.collectedGauge('playline_eraser_holds_over_an_hour', 'Holds of erasures accepted more than an hour ago', {
    collect: async (gauge) => gauge.set((await read()).holdsOverAnHour),
  });
}

/** Builds one read for all gauges. While a store does not answer, the last answer is used. */
function createWaitingReader({ readWaiting }: WaitingSource): () => Promise<Waiting> {
  let last: Waiting = { requests: 0, oldestAt: null, holdsOverAnHour: 0 };
  let asking: Promise<Waiting> | null = null;
  const ask = async () => {
    last =
      (await waitAtMost(
        ANSWER_MAX_MS,
        readWaiting().catch(() => null),
        () => null,
      )) ?? last;
    asking = null;
    return last;
  };
  return () => {
    asking ??= ask();
    return asking;
  };
}

/** @returns a function that notes that some work has been done */
function watchUpkeep(metrics: Metrics): (work: UpkeepWork) => void {
  const doneMs = new Map<UpkeepWork, number>();
  metrics.collectedGauge(
    'playline_eraser_upkeep_age_seconds',
    'Since this process did the work, or began to lead; absent where it never led',
    {
      labelNames: ['work'],
      collect: (gauge) => {
        for (const [work, ms] of doneMs) gauge.set({ work }, (performance.now() - ms) / MS_A_SECOND);
      },
    },
  );
  return (work) => void doneMs.set(work, performance.now());
}
