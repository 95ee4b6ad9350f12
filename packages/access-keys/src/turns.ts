import { PublicError } from '@playline/errors';

/** How much work goes on at once in this process. */
export interface TurnLimits {
  readonly atOnce: number;
  /** Others that may wait for their turn. */
  readonly waitingMax: number;
  /** What whoever comes then is told. */
  readonly full: string;
  /** And when to come again, in seconds. */
  readonly retryAfterS: number;
}

/**
 * Builds what runs a few pieces of work at a time, the others in their order.
 * @throws PublicError TOO_MANY_REQUESTS_ERROR from each call behind as many as may wait: its work has not begun
 */
export function createTurns({ atOnce, waitingMax, full, retryAfterS }: TurnLimits) {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (running >= atOnce) {
      if (waiting.length >= waitingMax)
        throw new PublicError('TOO_MANY_REQUESTS_ERROR', { message: full, retryAfterS });
      // The place is handed on, so that nobody who comes later takes it.
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
