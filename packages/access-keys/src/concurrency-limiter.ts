// Limits the concurrency of CPU-intensive work in a process.
import { PublicError } from '@playline/errors';

export interface ConcurrencyLimits {
  readonly concurrentMax: number;
  readonly waitingMax: number;
  /** Error message if the queue is full. */
  readonly busyMessage: string;
  readonly retryAfterS: number;
}

/** Runs calls in order with limited concurrency. A call throws TOO_MANY_REQUESTS_ERROR if the queue is full. */
export function createConcurrencyLimiter({ concurrentMax, waitingMax, busyMessage, retryAfterS }: ConcurrencyLimits) {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (running >= concurrentMax) {
      if (waiting.length >= waitingMax)
        throw new PublicError('TOO_MANY_REQUESTS_ERROR', { message: busyMessage, retryAfterS });
      // A finished call hands its slot directly to the next waiting call, so that later calls cannot overtake it.
      await new Promise<void>((resolve) => waiting.push(resolve));
    } else running++;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) running--;
      else next();
    }
  };
}
