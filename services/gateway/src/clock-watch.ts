import { PublicError } from '@playline/errors';
import type { Route } from '@playline/http';
import type { Closable, Metrics } from '@playline/runtime';
import { waitAtMost } from '@playline/stores';

export type ClockWatch = ReturnType<typeof createClockWatch>;

/** With a larger offset, the gateway would reject valid events, and erasures would have a wrong cut-off. */
export const CLOCK_OFFSET_MAX_MS = 3_600_000;
/**
 * A comparison expires after this time. The monotonic clock does not advance while a machine is suspended, so without
 * an expiry a gateway that cannot reach its stores would never become ready again.
 */
const COMPARISON_TTL_MS = 600_000;
/** Without traffic, there are no acknowledgements to compare with. */
const COMPARISON_INTERVAL_MS = 30_000;
/** The maximum time that startup waits for the first comparison. */
const FIRST_COMPARISON_MAX_MS = 1_000;

/**
 * Compares the wall clock with the clocks of the brokers and of Redis. Between comparisons, the monotonic clock
 * advances the time of the stores, so that a change of the wall clock is detected immediately.
 */
export function createClockWatch({ wallClockMs = Date.now, monotonicMs = () => performance.now() } = {}) {
  let compared: { readonly storeAtMs: number; readonly atMs: number } | null = null;
  /** Returns null without a recent comparison. */
  const readAheadMs = () => {
    if (compared === null) return null;
    const sinceMs = monotonicMs() - compared.atMs;
    return sinceMs > COMPARISON_TTL_MS ? null : wallClockMs() - (compared.storeAtMs + sinceMs);
  };
  /** Returns null if the clock is correct or has not been compared yet. */
  const fault = () => {
    const aheadMs = readAheadMs();
    if (aheadMs === null || Math.abs(aheadMs) <= CLOCK_OFFSET_MAX_MS) return null;
    const minutes = Math.round(Math.abs(aheadMs) / 60_000);
    return `this host's clock is ${minutes} min ${aheadMs > 0 ? 'ahead of' : 'behind'} the clocks of Kafka and Redis: synchronise it`;
  };
  return {
    /** Records the current time of a broker or of Redis. */
    observe: (storeAtMs: number) => {
      compared = { storeAtMs, atMs: monotonicMs() };
    },
    fault,
    reportOffset: (metrics: Pick<Metrics, 'collectedGauge'>) => {
      const help = 'Seconds by which the clock is ahead of the clocks of Kafka and Redis';
      metrics.collectedGauge('playline_gateway_clock_ahead_seconds', help, {
        collect: (gauge) => gauge.set((readAheadMs() ?? 0) / 1000),
      });
    },
    withReasons: (reasons: () => Readonly<Record<string, string>>) => (): Readonly<Record<string, string>> => {
      const error = fault();
      return error === null ? reasons() : { ...reasons(), clock: error };
    },
    /** Returns 500 from routes that write while the clock is wrong. */
    guard: (route: Route): Route => {
      if (route.method === 'GET') return route;
      const handle: Route['handle'] = (exchange, params) => {
        const error = fault();
        if (error !== null) throw new PublicError('INTERNAL_SERVER_ERROR', { cause: new Error(error) });
        return route.handle(exchange, params);
      };
      return { ...route, handle };
    },
  };
}

/** Compares with Redis now and every 30 seconds. Resolves after the first comparison, or after one second. */
export async function startClockComparison(
  clock: Pick<ClockWatch, 'observe'>,
  readClockMs: () => Promise<number>,
): Promise<Closable> {
  const compare = () => readClockMs().then(clock.observe, () => {});
  const timer = setInterval(compare, COMPARISON_INTERVAL_MS);
  timer.unref();
  await waitAtMost(FIRST_COMPARISON_MAX_MS, compare(), () => {});
  return { close: () => clearInterval(timer) };
}
