import { vi } from 'vitest';

/** A call that never settles, for fake timers: the caller's timeout elapses immediately. */
export function hang(): Promise<never> {
  // The caller starts its timer right after the call.
  queueMicrotask(() => vi.runOnlyPendingTimers());
  return new Promise(() => {});
}
