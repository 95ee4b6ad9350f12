import { setTimeout as delay } from 'node:timers/promises';

const POLL_MS = 25;
/** Long enough for a machine that does much else; one that is not reached costs nothing. */
const WAIT_MAX_MS = 90_000;

/**
 * Waits until a condition gives a truthy value and returns it. Of its own, because the testkit is for test files alone
 * and the command that repeats seeds is none.
 * @throws Error with `what` and the last fault when `maxMs` passes first
 */
export async function waitFor<T>(
  what: string,
  condition: () => Promise<T> | T,
  maxMs = WAIT_MAX_MS,
): Promise<NonNullable<T>> {
  const end = Date.now() + maxMs;
  let fault: unknown = null;
  for (;;) {
    try {
      const value = await condition();
      if (value) return value;
      fault = null;
    } catch (error) {
      fault = error;
    }
    if (Date.now() > end) throw new Error(`not within ${maxMs} ms: ${what}${fault === null ? '' : ` (${fault})`}`);
    await delay(POLL_MS);
  }
}
