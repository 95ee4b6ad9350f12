import { vi } from 'vitest';

/**
 * Answer of a store that hangs, for tests with fake timers. The time-out of the caller comes at once, so a test neither
 * waits for it nor meets it elsewhere because the machine is slow.
 */
export function hang(): Promise<never> {
  // The caller starts its timer right behind the call.
  queueMicrotask(() => vi.runOnlyPendingTimers());
  return new Promise(() => {});
}
