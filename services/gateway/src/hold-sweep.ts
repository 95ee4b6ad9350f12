import type { ErasureGuards } from '@playline/people';
import type { Closable, Logger } from '@playline/runtime';

/** A quarter of the time after which a hold lapses: links wait at most that much longer. */
const SWEEP_INTERVAL_MS = 15_000;

/** Drops, every 15 s, the holds that a gateway left behind because it ended between placing a hold and publishing the request. */
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
