import { PublicError } from '@playline/errors';
import type { Route } from '@playline/http';
import type { Closable } from '@playline/runtime';
import { waitAtMost } from '@playline/stores';

export type ClockWatch = ReturnType<typeof createClockWatch>;

/** Beyond this the gateway rejects good events, and erasures get a wrong cut-off. */
export const CLOCK_OFF_MAX_MS = 3_600_000;
/**
 * Only the wall clock notices a suspended machine; without this bound a gateway whose stores are away would never be
 * ready again.
 */
const COMPARISON_MAX_MS = 600_000;
/** A new gateway, or one that refuses requests, gets no acknowledgements to compare with. */
const COMPARISON_INTERVAL_MS = 30_000;
/** The listener waits this long for the first comparison. */
const FIRST_ANSWER_MAX_MS = 1_000;

/**
 * Compares the wall clock with those of the brokers and of Redis. Between comparisons the monotonic clock continues the
 * time of the stores, so a changed wall clock is noticed immediately.
 */
export function createClockWatch({ wallClockMs = Date.now, monotonicMs = () => performance.now() } = {}) {
  let compared: { readonly storeAtMs: number; readonly atMs: number } | null = null;
  /** Null when the clock is right or not compared yet. */
  const fault = () => {
    if (compared === null) return null;
    const sinceMs = monotonicMs() - compared.atMs;
    if (sinceMs > COMPARISON_MAX_MS) return null;
    const aheadMs = wallClockMs() - (compared.storeAtMs + sinceMs);
    if (Math.abs(aheadMs) <= CLOCK_OFF_MAX_MS) return null;
    const minutes = Math.round(Math.abs(aheadMs) / 60_000);
    return `the clock of this host is ${minutes} min ${aheadMs > 0 ? 'ahead of' : 'behind'} those of Kafka and Redis: synchronise it`;
  };
  return {
    /** Takes the current time of a broker or of Redis. */
    observe: (storeAtMs: number) => {
      compared = { storeAtMs, atMs: monotonicMs() };
    },
    fault,
    withReasons: (reasons: () => Readonly<Record<string, string>>) => (): Readonly<Record<string, string>> => {
      const wrong = fault();
      return wrong === null ? reasons() : { ...reasons(), clock: wrong };
    },
    /** Answers a route that writes with 500 while the clock is wrong. */
    guard: (route: Route): Route => {
      if (route.method === 'GET') return route;
      const handle: Route['handle'] = (exchange, params) => {
        const wrong = fault();
        if (wrong !== null) throw new PublicError('INTERNAL_SERVER_ERROR', { cause: new Error(wrong) });
        return route.handle(exchange, params);
      };
      return { ...route, handle };
    },
  };
}

/** Compares with Redis now and every half minute. Resolves after the first answer, or a second without one. */
export async function openClockComparison(
  clock: Pick<ClockWatch, 'observe'>,
  readClockMs: () => Promise<number>,
): Promise<Closable> {
  const compare = () => readClockMs().then(clock.observe, () => {});
  const timer = setInterval(compare, COMPARISON_INTERVAL_MS);
  timer.unref();
  await waitAtMost(FIRST_ANSWER_MAX_MS, compare(), () => {});
  return { close: () => clearInterval(timer) };
}
