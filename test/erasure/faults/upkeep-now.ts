// Loaded into an eraser before its own code. Upkeep that normally runs once a minute runs every half second, and the
// five-minute wait after a start is skipped. Nothing else differs from a real eraser.
const MINUTE_MS = 60_000;
const QUICK_MS = 500;
const FIRST_AFTER_MS = 5 * MINUTE_MS;

const realSetInterval = globalThis.setInterval;
const realNow = performance.now.bind(performance);

/** Advances the clock only while the eraser chooses its work, which is synchronous. */
function withAdvancedClock(work: () => void): void {
  performance.now = () => realNow() + FIRST_AFTER_MS;
  try {
    work();
  } finally {
    performance.now = realNow;
  }
}

globalThis.setInterval = ((work: () => void, ms?: number, ...rest: unknown[]) =>
  ms === MINUTE_MS
    ? realSetInterval(() => withAdvancedClock(work), QUICK_MS)
    : realSetInterval(work, ms, ...(rest as []))) as typeof setInterval;
