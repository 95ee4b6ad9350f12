import { vi } from 'vitest';

/** A call that never answers, for fake timers: the timeout of the caller elapses immediately. */
export function hang(): Promise<never> {
  // The caller starts its timer right after the call.
  queueMicrotask(() => vi.runOnlyPendingTimers());
  return new Promise(() => {});
}
