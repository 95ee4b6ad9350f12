import { setTimeout as delay } from 'node:timers/promises';

/** Shorter than vitest's timeouts, whose errors would not name the condition. */
const DEADLINE_MS = 60_000;

/** Each pause is a tenth of the elapsed time, so that long waits do not compete with the awaited work for CPU time. */
const PAUSE_MS = { min: 10, max: 200, fraction: 0.1 };

/** Waits until `condition` returns a truthy value. @throws Error with `what` and the last error after `deadlineMs` */
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
    const pauseMs = Math.min(PAUSE_MS.max, Math.max(PAUSE_MS.min, waitedMs * PAUSE_MS.fraction));
    // Check one last time at the deadline.
    await delay(Math.min(pauseMs, deadlineMs - waitedMs));
  }
  throw new Error(`not within ${deadlineMs} ms: ${what}${fault === null ? '' : ` (${toText(fault)})`}`);
}

/** Includes the error's causes, because `fetch` reports the reason in the cause. */
function toText(fault: unknown): string {
  const cause = fault instanceof Error ? fault.cause : undefined;
  return cause === undefined ? String(fault) : `${fault}: ${toText(cause)}`;
}

/** Returns the number of runs for a property test: few in `npm test`, many in `npm run test:all`. */
export const runsOf = ({ quick, all }: { quick: number; all: number }): number =>
  process.env.PLAYLINE_TEST_ALL === undefined ? quick : all;
