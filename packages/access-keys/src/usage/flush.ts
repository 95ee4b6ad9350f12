import { waitAtMost } from '@playline/errors';
import { createUsageCounter, type UsageCounter } from './counter.ts';
import type { KeyUsage } from './key-usage.ts';

export interface UsageFlushOptions {
  readonly counter: Pick<UsageCounter, 'take'>;
  readonly usage: Pick<KeyUsage, 'add'>;
  /**
   * Called with the number of requests whose counts are lost, and why: more keys than are kept, or a store that refuses
   * them.
   */
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
      await waitAtMost(CLOSE_MAX_MS, running.then(flush), () => {}).catch(() => {});
    },
  };
}

export interface UsageCountParts {
  /** Closed with the count. */
  readonly store: Pick<KeyUsage, 'add'> & { close(): Promise<void> };
  /** Told of requests whose counts nobody will see. */
  readonly onLost: (requests: number) => void;
  readonly logger: { warn(context: object, sentence: string): void };
}

/** How often the same trouble is told. */
const TELL_AGAIN_MS = 60_000;

/** Opens the count of key use of one process: whoever counts waits for nobody. */
export function openUsageCount(parts: UsageCountParts): { readonly counter: UsageCounter; close(): Promise<void> } {
  const { store, onLost, logger } = parts;
  let toldMs = Number.NEGATIVE_INFINITY;
  const counter = createUsageCounter();
  const flush = openUsageFlush({
    counter,
    usage: store,
    onLost: (requests, error) => {
      onLost(requests);
      if (performance.now() - toldMs < TELL_AGAIN_MS) return;
      toldMs = performance.now();
      logger.warn({ error }, 'the use of keys is not counted now; nothing else depends on it');
    },
  });
  return {
    counter,
    close: async () => {
      await flush.close();
      await store.close();
    },
  };
}
