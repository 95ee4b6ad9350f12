/** Timers fire up to a millisecond early: the look that was waited for is over then. */
const EARLY_MS = 2;

/**
 * How long to wait for the next look, in milliseconds: all that look as often do so at the same moments of a process, and
 * so wake it, and the store that they ask, once and not once each.
 */
export function untilNextLook(everyMs: number, nowMs: number = performance.now()): number {
  const waitMs = everyMs - (nowMs % everyMs);
  return waitMs < EARLY_MS ? waitMs + everyMs : waitMs;
}
