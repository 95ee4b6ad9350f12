import { PublicError } from '@playline/errors';
import type { Route } from '@playline/http';
import type { Closable } from '@playline/runtime';
import { waitAtMost } from '@playline/stores';

type Reasons = () => Readonly<Record<string, string>>;

/** Compares the wall clock of this process with those of the brokers and of Redis. */
export interface ClockWatch {
  /** Notes the present time of a store: that of a batch which a broker has just acknowledged, or the clock of Redis. */
  observe(storeAtMs: number): void;
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
 * A comparison is used for so long. Without a limit, a pause of the whole machine, which only the monotonic clock misses,
 * would keep a gateway unready for ever whose stores do not answer.
 */
const COMPARISON_MAX_MS = 600_000;
/** Refused requests bring no acknowledgement, and a new gateway has none yet: the clock of Redis is read this often. */
const COMPARISON_INTERVAL_MS = 30_000;
/** The listener waits this long for the first comparison. */
const FIRST_ANSWER_MAX_MS = 1_000;

export interface ClockWatchOptions {
  wallClockMs?: () => number;
  monotonicMs?: () => number;
}

/**
 * Creates the watch. Between two observations the time of the stores is continued by the monotonic clock, so a wall
 * clock that is set, or set right, is noticed at once.
 */
export function createClockWatch(options: ClockWatchOptions = {}): ClockWatch {
  const { wallClockMs = Date.now, monotonicMs = () => performance.now() } = options;
  let compared: { readonly storeAtMs: number; readonly atMs: number } | null = null;
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
    observe: (storeAtMs) => {
      compared = { storeAtMs, atMs: monotonicMs() };
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

/**
 * Compares with the clock of Redis now and every half minute, so that the first request after a start or a quiet night is
 * judged too. Resolves after the first answer, or a second without one: acknowledgements then compare.
 */
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
