import { explainConnection, type StoreName } from './explain.ts';

/** A refusal is mended by a person: one attempt in five seconds notices soon enough and wears no server out. */
const REFUSED_WAIT_MAX_MS = 5_000;
const WAIT_MIN_MS = 50;

/** How long a client waits before it connects again. */
export interface ReconnectPace {
  /** Told of the faults of the connection. */
  heard(fault: unknown): void;
  /** Milliseconds before the attempt of this number, counted from 1 since the last success. */
  waitMs(attempt: number): number;
}

/**
 * Waits little while a store is away, since it may be back at any moment, and doubles the wait up to five seconds while
 * it refuses us (TLS or login).
 * @param awayMaxMs longest wait while the store is away
 */
export function createReconnectPace(store: StoreName, awayMaxMs: number): ReconnectPace {
  let isRefused = false;
  return {
    heard(fault) {
      ({ isRefusal: isRefused } = explainConnection(store, fault));
    },
    waitMs(attempt) {
      if (!isRefused) return Math.min(WAIT_MIN_MS * attempt, awayMaxMs);
      // The exponent is bounded: hours of attempts must not overflow into no wait at all.
      return Math.min(WAIT_MIN_MS * 2 ** Math.min(attempt, 10), REFUSED_WAIT_MAX_MS);
    },
  };
}
