import { PublicError } from '@playline/errors';
import type { Route } from '@playline/http';

type Reasons = () => Readonly<Record<string, string>>;

/** Compares the wall clock of this process with that of the brokers. */
export interface ClockWatch {
  /** Notes the time that a broker gave to a batch that it has just acknowledged. */
  observe(loggedAtMs: number): void;
  /** What is wrong with the clock; null when it is right, or not compared yet. */
  fault(): string | null;
  /** Adds what is wrong with the clock to the reasons of `/readyz`. */
  withReasons(reasons: Reasons): Reasons;
  /** Answers the requests of a route that writes with 500 while the clock is wrong. */
  guard(route: Route): Route;
}

/**
 * Beyond this a gateway rejects good events, because it judges the age of an event by its own clock, and erasures get a
 * wrong cut-off. Hosts that synchronise their clocks are within a second; summer time and wrong zones are an hour off.
 */
export const CLOCK_OFF_MAX_MS = 3_600_000;
/**
 * A comparison is used for so long. Requests are refused while the clock is wrong, so nothing is acknowledged and
 * compared again. After a pause of the whole machine, which only the monotonic clock misses, the gateway would stay
 * unready for ever.
 */
const COMPARISON_MAX_MS = 600_000;

export interface ClockWatchOptions {
  wallClockMs?: () => number;
  monotonicMs?: () => number;
}

/**
 * Creates the watch. Between two acknowledgements the time of the brokers is continued by the monotonic clock, so a
 * wall clock that is set, or set right, is noticed without traffic.
 */
export function createClockWatch(options: ClockWatchOptions = {}): ClockWatch {
  const { wallClockMs = Date.now, monotonicMs = () => performance.now() } = options;
  let compared: { readonly loggedAtMs: number; readonly atMs: number } | null = null;
  const fault = () => {
    if (compared === null) return null;
    const sinceMs = monotonicMs() - compared.atMs;
    if (sinceMs > COMPARISON_MAX_MS) return null;
    const aheadMs = wallClockMs() - (compared.loggedAtMs + sinceMs);
    if (Math.abs(aheadMs) <= CLOCK_OFF_MAX_MS) return null;
    const minutes = Math.round(Math.abs(aheadMs) / 60_000);
    return `the clock of this host is ${minutes} min ${aheadMs > 0 ? 'ahead of' : 'behind'} that of the brokers: synchronise it`;
  };
  return {
    observe: (loggedAtMs) => {
      compared = { loggedAtMs, atMs: monotonicMs() };
    },
    fault,
    withReasons: (reasons) => () => {
      const wrong = fault();
      return wrong === null ? reasons() : { ...reasons(), clock: wrong };
    },
    guard: (route) => {
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
