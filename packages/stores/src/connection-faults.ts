import { explainConnection, type StoreName } from './explain-fault.ts';

export interface ConnectionFaults {
  listenerOf(store: StoreName): (fault: unknown) => void;
  /** Wraps a store's readiness check: a success clears the store's reason. */
  clearingOnSuccess(store: StoreName, holds: () => Promise<boolean>): () => Promise<boolean>;
  /** Why stores cannot be used, from faults of the last half minute. */
  reasons(): Readonly<Record<string, string>>;
}

/** A refused client retries for hours; one line per minute is enough. */
const REPEAT_MS = 60_000;
/** Longer than the longest wait between two attempts. */
const FRESH_MS = 30_000;

type Log = { warn(fields: object, message: string): void };

interface Known {
  readonly message: string;
  reportedMs: number;
  loggedMs: number;
  faults: number;
}

/**
 * Collects the faults of all clients. A refusal (TLS or login) is logged at most once per minute, store and message.
 * An unavailable store appears only in `reasons`, because its clients log it.
 * @param nowMs a monotonic clock
 */
export function createConnectionFaults(log: Log, nowMs: () => number = () => performance.now()): ConnectionFaults {
  const stores = new Map<StoreName, Map<string, Known>>();
  const report = (store: StoreName, fault: unknown) => {
    const { message, isRefusal } = explainConnection(store, fault);
    const messages = stores.get(store) ?? new Map<string, Known>();
    stores.set(store, messages);
    const reportedMs = nowMs();
    const known = messages.get(message) ?? { message, reportedMs, loggedMs: Number.NEGATIVE_INFINITY, faults: 0 };
    messages.set(message, known);
    known.reportedMs = reportedMs;
    known.faults++;
    if (!isRefusal || reportedMs - known.loggedMs < REPEAT_MS) return;
    log.warn({ store, faults: known.faults }, message);
    known.loggedMs = reportedMs;
    known.faults = 0;
  };
  return {
    listenerOf: (store) => (fault) => report(store, fault),
    clearingOnSuccess: (store, holds) => async () => {
      const isUsable = await holds();
      // The log times are kept: an unstable store is not logged more often.
      if (isUsable) for (const known of stores.get(store)?.values() ?? []) known.reportedMs = Number.NEGATIVE_INFINITY;
      return isUsable;
    },
    reasons() {
      const found: Record<string, string> = {};
      for (const [store, messages] of stores) {
        const last = [...messages.values()].sort((a, b) => b.reportedMs - a.reportedMs)[0];
        if (last !== undefined && nowMs() - last.reportedMs <= FRESH_MS) found[store] = last.message;
      }
      return found;
    },
  };
}

/** Short enough to notice soon that the cause of a refusal was fixed. */
const REFUSED_WAIT_MAX_MS = 5_000;
const WAIT_MIN_MS = 50;

/**
 * Waits briefly while a store is unavailable, and up to five seconds while it refuses the client (TLS or login).
 * @param downMaxMs longest wait while the store is unavailable
 */
export function createReconnectPace(store: StoreName, downMaxMs: number) {
  let isRefused = false;
  return {
    failed(fault: unknown): void {
      ({ isRefusal: isRefused } = explainConnection(store, fault));
    },
    /** Milliseconds to wait before an attempt. @param attempt counted from 1 since the last success */
    waitMs(attempt: number): number {
      if (!isRefused) return Math.min(WAIT_MIN_MS * attempt, downMaxMs);
      // The exponent is bounded to avoid an overflow.
      return Math.min(WAIT_MIN_MS * 2 ** Math.min(attempt, 10), REFUSED_WAIT_MAX_MS);
    },
  };
}

interface Refusal {
  readonly pace: ReturnType<typeof createReconnectPace>;
  attempts: number;
  fault: Error;
  untilMs: number;
}

/**
 * Limits the attempts of clients that connect on every call: after a refusal, calls fail until a wait has elapsed.
 * @param nowMs a monotonic clock
 */
export function createConnectGate(store: StoreName, nowMs: () => number = () => performance.now()) {
  const refusals = new Map<string, Refusal>();
  return {
    /** The current refusal for an address (`host:port`); null when clients may connect. */
    refusalOf(address: string): Error | null {
      const refusal = refusals.get(address);
      return refusal !== undefined && nowMs() < refusal.untilMs ? refusal.fault : null;
    },
    /** To be called after every attempt, with null after a success. */
    settled(address: string, fault: Error | null): void {
      if (fault === null || !explainConnection(store, fault).isRefusal) return void refusals.delete(address);
      // While the store is unavailable, callers apply their own waits.
      const pace = createReconnectPace(store, 0);
      const refusal = refusals.get(address) ?? { pace, attempts: 0, fault, untilMs: 0 };
      refusals.set(address, refusal);
      // Concurrent attempts count as one.
      if (nowMs() < refusal.untilMs) return;
      refusal.pace.failed(fault);
      refusal.attempts++;
      refusal.fault = fault;
      refusal.untilMs = nowMs() + refusal.pace.waitMs(refusal.attempts);
    },
  };
}
