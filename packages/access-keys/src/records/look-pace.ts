/** Timers fire up to a millisecond early. The moment that was waited for then counts as passed. */
const EARLY_MS = 2;

/**
 * How long to wait for the next look, in milliseconds. All loops with the same interval look at the same moments, so
 * that they wake the process, and the store, once and not once each.
 */
export function untilNextLook(everyMs: number, nowMs: number = performance.now()): number {
  const waitMs = everyMs - (nowMs % everyMs);
  return waitMs < EARLY_MS ? waitMs + everyMs : waitMs;
}
