/**
 * Loaded into an eraser before its own code: what it looks for once a minute it looks for each half second, and the five
 * minutes after which it begins are over when it looks. Everything else is the eraser as it is.
 */
const MINUTE_MS = 60_000;
const QUICK_MS = 500;
const FIRST_AFTER_MS = 5 * MINUTE_MS;

const realSetInterval = globalThis.setInterval;
const realNow = performance.now.bind(performance);

/** The clock is ahead while the work is chosen, and for nothing else: choosing ends within the call. */
function whileAhead(work: () => void): void {
  performance.now = () => realNow() + FIRST_AFTER_MS;
  try {
    work();
  } finally {
    performance.now = realNow;
  }
}

globalThis.setInterval = ((work: () => void, ms?: number, ...rest: unknown[]) =>
  ms === MINUTE_MS
    ? realSetInterval(() => whileAhead(work), QUICK_MS)
    : realSetInterval(work, ms, ...(rest as []))) as typeof setInterval;
