// Limits concurrent work in a process.
import { PublicError } from '@playline/errors';

export interface TurnLimits {
  readonly concurrentMax: number;
  readonly waitingMax: number;
  readonly full: string;
  readonly retryAfterS: number;
}

/** Runs a few pieces of work at a time, in order. @throws PublicError TOO_MANY_REQUESTS_ERROR from a call when too many wait */
export function createTurns({ concurrentMax, waitingMax, full, retryAfterS }: TurnLimits) {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (running >= concurrentMax) {
      if (waiting.length >= waitingMax)
        throw new PublicError('TOO_MANY_REQUESTS_ERROR', { message: full, retryAfterS });
      // The turn is passed on directly, so that no later caller can take it.
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
