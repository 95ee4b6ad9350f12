import { setTimeout as delay } from 'node:timers/promises';

// Repeats a step, at most once per `intervalMs`. `close` waits for the current step, and rejects if a step failed.
export function repeatEvery(intervalMs: number, step: () => Promise<unknown>): { close(): Promise<void> } {
  const ended = new AbortController();
  const running = (async () => {
    let nextMs = performance.now();
    while (!ended.signal.aborted) {
      await step();
      nextMs = Math.max(nextMs + intervalMs, performance.now());
      const waitMs = Math.max(0, nextMs - performance.now());
      await delay(waitMs, undefined, { signal: ended.signal }).catch(() => {});
    }
  })();
  // `close` rethrows the error. Until then, it must not count as an unhandled rejection.
  running.catch(() => {});
  return {
    close: () => {
      ended.abort();
      return running;
    },
  };
}
