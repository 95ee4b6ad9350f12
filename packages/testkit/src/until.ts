import { setTimeout as delay } from 'node:timers/promises';

/** Below the deadlines of vitest, whose words would not name what was waited for; long enough for a busy machine. */
const DEADLINE_MS = 60_000;

/**
 * The pause between two looks is a tenth of the time waited so far, within these bounds: a test that waits for long leaves
 * the processors to what it waits for, and ends little later.
 */
const PAUSE_MS = { min: 10, max: 200, share: 0.1 };

/**
 * Waits until `condition` gives a truthy value and returns it.
 * @throws Error with `what` and the last fault when `deadlineMs` passes first
 */
export async function until<T>(
  what: string,
  condition: () => Promise<T> | T,
  deadlineMs = DEADLINE_MS,
): Promise<NonNullable<T>> {
  const start = performance.now();
  let fault: unknown = null;
  for (;;) {
    try {
      const value = await condition();
      if (value) return value;
      fault = null;
    } catch (error) {
      fault = error;
    }
    const waitedMs = performance.now() - start;
    if (waitedMs >= deadlineMs) break;
    const pauseMs = Math.min(PAUSE_MS.max, Math.max(PAUSE_MS.min, waitedMs * PAUSE_MS.share));
    // The last look is at the deadline, whatever the pauses before it.
    await delay(Math.min(pauseMs, deadlineMs - waitedMs));
  }
  throw new Error(`not within ${deadlineMs} ms: ${what}${fault === null ? '' : ` (${toText(fault)})`}`);
}

/** `fetch` and others put the reason into the cause: without it a refused connection and a bad port read alike. */
function toText(fault: unknown): string {
  const cause = fault instanceof Error ? fault.cause : undefined;
  return cause === undefined ? String(fault) : `${fault}: ${toText(cause)}`;
}
