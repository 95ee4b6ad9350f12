import { explainConnection, type StoreName } from './explain-fault.ts';

export interface ConnectionFaults {
  listenerOf(store: StoreName): (fault: unknown) => void;
  /** Wraps a check of a store: a success clears its reason. */
  clearingOnSuccess(store: StoreName, holds: () => Promise<boolean>): () => Promise<boolean>;
  /** Why stores cannot be used, if that was reported within the last half minute. */
  reasons(): Readonly<Record<string, string>>;
}

/** A refused client retries for hours, and one line a minute is enough. */
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
 * Collects the faults of all clients. A refusal (TLS or login) is logged at most once a minute for each store and message.
 * A store that is only away appears in `reasons` alone, because its clients log that.
 * @param nowMs a clock that never goes back
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
      // The log times stay: a store that comes and goes is logged no more often.
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

/** Noticed soon enough after a person has corrected the refusal. */
const REFUSED_WAIT_MAX_MS = 5_000;
const WAIT_MIN_MS = 50;

/**
 * Waits little while a store is away, and up to five seconds while it refuses the client (TLS or login).
 * @param awayMaxMs longest wait while the store is away
 */
export function createReconnectPace(store: StoreName, awayMaxMs: number) {
  let isRefused = false;
  return {
    failed(fault: unknown): void {
      ({ isRefusal: isRefused } = explainConnection(store, fault));
    },
    /** Milliseconds before the attempt of this number, counted from 1 since the last success. */
    waitMs(attempt: number): number {
      if (!isRefused) return Math.min(WAIT_MIN_MS * attempt, awayMaxMs);
      // The exponent is bounded, because the wait must not overflow.
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
 * Limits the attempts of clients that connect with every call: after a refusal, calls fail until a wait has passed.
 * @param nowMs a clock that never goes back
 */
export function createConnectGate(store: StoreName, nowMs: () => number = () => performance.now()) {
  const refusals = new Map<string, Refusal>();
  return {
    /** The current refusal of an address (`host:port`); null when it may be connected to. */
    refusalOf(address: string): Error | null {
      const refusal = refusals.get(address);
      return refusal !== undefined && nowMs() < refusal.untilMs ? refusal.fault : null;
    },
    /** Call it after every attempt, with null after a success. */
    settled(address: string, fault: Error | null): void {
      if (fault === null || !explainConnection(store, fault).isRefusal) return void refusals.delete(address);
      // While the store is away, callers have their own waits.
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
