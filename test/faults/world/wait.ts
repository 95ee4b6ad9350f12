import { until } from '@playline/testkit';

const WAIT_MAX_MS = 90_000;

/** Like `until`, with a longer default timeout. */
export function waitFor<T>(
  what: string,
  condition: () => Promise<T> | T,
  maxMs = WAIT_MAX_MS,
): Promise<NonNullable<T>> {
  return until(what, condition, maxMs);
}
