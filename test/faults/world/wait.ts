import { until } from '@playline/testkit';

/** Longer than elsewhere: a trial runs many processes on a machine that may do much else. */
const WAIT_MAX_MS = 90_000;

/**
 * Waits until a condition gives a truthy value and returns it: `until` with the patience of a trial.
 * @throws Error with `what` and the last fault when `maxMs` passes first
 */
export function waitFor<T>(
  what: string,
  condition: () => Promise<T> | T,
  maxMs = WAIT_MAX_MS,
): Promise<NonNullable<T>> {
  return until(what, condition, maxMs);
}
