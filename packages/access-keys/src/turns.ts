import { PublicError } from '@playline/errors';

/** Limits of concurrent work in this process. */
export interface TurnLimits {
  readonly concurrentMax: number;
  /** Most callers that wait for their turn. */
  readonly waitingMax: number;
  /** Message for callers beyond that. */
  readonly full: string;
  /** Seconds after which they may retry. */
  readonly retryAfterS: number;
}

/**
 * Creates a function that runs a few pieces of work at a time; others wait in order.
 * @throws PublicError TOO_MANY_REQUESTS_ERROR from a call when too many wait; its work has not begun
 */
export function createTurns({ concurrentMax: atOnce, waitingMax, full, retryAfterS }: TurnLimits) {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (running >= atOnce) {
      if (waiting.length >= waitingMax)
        throw new PublicError('TOO_MANY_REQUESTS_ERROR', { message: full, retryAfterS });
      // The place is passed on directly, so that no later caller can take it.
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
