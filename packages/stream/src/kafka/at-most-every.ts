/** Creates a function that starts `work` at most once per interval and awaits the current run. Ignores faults. */
export function atMostEvery(intervalMs: number, work: () => Promise<void>): () => Promise<void> {
  let startedAtMs = Number.NEGATIVE_INFINITY;
  let running: Promise<void> | null = null;
  return async () => {
    if (running === null && performance.now() - startedAtMs >= intervalMs) {
      startedAtMs = performance.now();
      const end = () => {
        running = null;
      };
      running = work().then(end, end);
    }
    await running;
  };
}
