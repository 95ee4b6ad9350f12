import type { Closable } from '@playline/runtime';

interface RepeatOptions {
  readonly intervalMs: number;
  run(): Promise<void>;
  onFault(error: unknown): void;
}

/** Minimum time between two reports of a fault. */
const REPORT_INTERVAL_MS = 60_000;

/** Runs a job until closed, with a pause after each run. Reports at most one fault per minute. */
export function repeat({ intervalMs, run, onFault }: RepeatOptions): Closable {
  let reportedMs = Number.NEGATIVE_INFINITY;
  const report = (error: unknown) => {
    if (performance.now() - reportedMs < REPORT_INTERVAL_MS) return;
    reportedMs = performance.now();
    onFault(error);
  };
  let isClosed = false;
  let timer: NodeJS.Timeout;
  let running = Promise.resolve();
  const schedule = () => {
    if (isClosed) return;
    timer = setTimeout(() => {
      running = run().catch(report).then(schedule);
    }, intervalMs);
  };
  schedule();
  return {
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await running;
    },
  };
}
