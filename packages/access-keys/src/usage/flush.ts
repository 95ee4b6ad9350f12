import { within } from '../records/joined.ts';
import type { UsageCounter } from './counter.ts';
import type { KeyUsage } from './key-usage.ts';

export interface UsageFlushOptions {
  readonly counter: Pick<UsageCounter, 'take'>;
  readonly usage: Pick<KeyUsage, 'add'>;
  /** Told of requests whose counts nobody will see, and why: more keys than are held, or a store that does not take them. */
  readonly onLost?: (requests: number, fault: unknown) => void;
  /** A divisor of a minute. */
  readonly everyMs?: number;
  readonly wallClockMs?: () => number;
}

/** Soon enough for somebody who has just tried a key; a thousand keys take Redis a few milliseconds. */
const EVERY_MS = 10_000;
/** Counts are not worth a drain that lasts longer. */
const CLOSE_MAX_MS = 1_000;

/**
 * Tells the store every ten seconds of the clock what was counted, so that one go never spans two minutes; the rest when it
 * is closed. What the store does not take is lost, and told to `onLost`: sent again it might count twice.
 */
export function openUsageFlush(options: UsageFlushOptions): { close(): Promise<void> } {
  const { counter, usage, onLost, everyMs = EVERY_MS, wallClockMs = Date.now } = options;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  let isClosed = false;

  const flush = async () => {
    const { lost, ...counts } = counter.take();
    if (lost > 0) onLost?.(lost, new Error('more keys were used than are counted'));
    if (counts.keys.length === 0) return;
    try {
      await usage.add(counts);
    } catch (fault) {
      onLost?.(
        counts.keys.reduce((sum, { uses }) => sum + uses, 0),
        fault,
      );
    }
  };
  const schedule = () => {
    if (isClosed) return;
    timer = setTimeout(
      () => {
        running = flush().finally(schedule);
      },
      everyMs - (wallClockMs() % everyMs),
    );
    timer.unref();
  };
  schedule();
  return {
    close: async () => {
      isClosed = true;
      clearTimeout(timer);
      await within(running.then(flush), CLOSE_MAX_MS).catch(() => {});
    },
  };
}
