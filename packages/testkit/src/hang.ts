import { vi } from 'vitest';

/** A call that never settles. Requires fake timers, and lets the caller's timeout elapse immediately. */
export function hang(): Promise<never> {
  // The caller starts its timeout right after this call returns.
  queueMicrotask(() => vi.runOnlyPendingTimers());
  return new Promise(() => {});
}
