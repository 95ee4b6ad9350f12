import { waitAtMost } from '@playline/stores';
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
  /** Interval in milliseconds. Must divide a minute. */
  readonly everyMs?: number;
  readonly wallClockMs?: () => number;
}

/** Short enough for a developer who has just tried a key. Counts of a thousand keys take Redis a few milliseconds. */
const EVERY_MS = 10_000;
/** Shutting down must not wait longer for counts. */
const CLOSE_MAX_MS = 1_000;

/**
 * Sends the counts to the store every ten seconds of the clock, so that one report never spans two minutes, and the
 * rest when it is closed. What the store refuses is lost and reported to `onLost`: sent again, it might be counted
 * twice.
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
  /** Called with the number of requests whose counts are lost. */
  readonly onLost: (requests: number) => void;
  readonly logger: { warn(context: object, sentence: string): void };
}

/** The same fault is logged this often at most. */
const TELL_AGAIN_MS = 60_000;

/** Opens the count of key use of one process. Counting never makes a request wait. */
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
