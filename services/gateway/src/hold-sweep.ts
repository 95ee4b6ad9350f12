import type { ErasureGuards } from '@playline/people';
import type { Closable, Logger } from '@playline/runtime';

/** A quarter of the time after which a hold lapses. Links wait at most this much longer. */
const SWEEP_INTERVAL_MS = 15_000;

/** Drops abandoned holds every 15 s. A gateway that ends before it publishes the request leaves its hold behind. */
export function openHoldSweep(guards: Pick<ErasureGuards, 'dropLapsed'>, logger: Logger): Closable {
  const sweep = async () => {
    try {
      const dropped = await guards.dropLapsed(Date.now());
      if (dropped > 0) logger.warn({ dropped }, 'holds of erasures lapsed: their requests never reached the log');
    } catch (error) {
      logger.warn({ error }, 'lapsed holds could not be dropped; the next sweep tries again');
    }
  };
  const timer = setInterval(() => void sweep(), SWEEP_INTERVAL_MS);
  timer.unref();
  return { close: () => clearInterval(timer) };
}
