import { setTimeout as delay } from 'node:timers/promises';

/**
 * Waits until `condition` gives a truthy value and returns it.
 * @throws Error with `what` and the last fault when `deadlineMs` passes first
 */
export async function until<T>(
  what: string,
  condition: () => Promise<T> | T,
  deadlineMs = 20_000,
): Promise<NonNullable<T>> {
  const end = Date.now() + deadlineMs;
  let fault: unknown = null;
  do {
    try {
      const value = await condition();
      if (value) return value;
      fault = null;
    } catch (error) {
      fault = error;
    }
    await delay(25);
  } while (Date.now() < end);
  throw new Error(`not within ${deadlineMs} ms: ${what}${fault === null ? '' : ` (${fault})`}`);
}
