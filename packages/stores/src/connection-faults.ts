import { explainConnection, type StoreName } from './explain-fault.ts';

export interface ConnectionFaults {
  listenerOf(store: StoreName): (fault: unknown) => void;
  /** Wraps a store's readiness check. A successful check clears the store's reason. */
  clearingOnSuccess(store: StoreName, check: () => Promise<boolean>): () => Promise<boolean>;
  /** Returns why stores cannot be used, from faults in the last half minute. */
  reasons(): Readonly<Record<string, string>>;
}

/** A refused client may retry for hours. One line per minute is enough. */
const REPEAT_MS = 60_000;
/** More than the longest wait between two attempts. */
const REASON_MAX_AGE_MS = 30_000;

type Log = { warn(fields: object, message: string): void };

interface ReportedFault {
  readonly message: string;
  reportedMs: number;
  loggedMs: number;
  faults: number;
}

/**
 * Collects the faults of all clients. A refusal (TLS or login) is logged at most once per minute for each store and
 * message. An unavailable store appears only in `reasons`, because its clients log their own faults.
 * @param nowMs returns the time of a monotonic clock
 */
export function createConnectionFaults(log: Log, nowMs: () => number = () => performance.now()): ConnectionFaults {
  const stores = new Map<StoreName, Map<string, ReportedFault>>();
  const report = (store: StoreName, fault: unknown) => {
    const { message, isRefusal } = explainConnection(store, fault);
    const messages = stores.get(store) ?? new Map<string, ReportedFault>();
    stores.set(store, messages);
    const reportedMs = nowMs();
    const reported = messages.get(message) ?? { message, reportedMs, loggedMs: Number.NEGATIVE_INFINITY, faults: 0 };
    messages.set(message, reported);
    reported.reportedMs = reportedMs;
    reported.faults++;
    if (!isRefusal || reportedMs - reported.loggedMs < REPEAT_MS) return;
    log.warn({ store, faults: reported.faults }, message);
    reported.loggedMs = reportedMs;
    reported.faults = 0;
  };
  return {
    listenerOf: (store) => (fault) => report(store, fault),
    clearingOnSuccess: (store, check) => async () => {
      const isUsable = await check();
      // Log times are retained, so that an unstable store is not logged more often.
      if (isUsable)
        for (const reported of stores.get(store)?.values() ?? []) reported.reportedMs = Number.NEGATIVE_INFINITY;
      return isUsable;
    },
    reasons() {
      const reasons: Record<string, string> = {};
      for (const [store, messages] of stores) {
        const last = [...messages.values()].sort((a, b) => b.reportedMs - a.reportedMs)[0];
        if (last !== undefined && nowMs() - last.reportedMs <= REASON_MAX_AGE_MS) reasons[store] = last.message;
      }
      return reasons;
    },
  };
}

/** Short enough to reconnect soon after the cause of a refusal is fixed. */
const REFUSED_WAIT_MAX_MS = 5_000;
const WAIT_MIN_MS = 50;

/**
 * Creates a reconnect delay: short while a store is unavailable, and up to five seconds while it refuses the client.
 * @param downMaxMs maximum delay while the store is unavailable
 */
export function createReconnectPace(store: StoreName, downMaxMs: number) {
  let isRefused = false;
  return {
    recordFault(fault: unknown): void {
      ({ isRefusal: isRefused } = explainConnection(store, fault));
    },
    /**
     * Returns the delay before an attempt in milliseconds. @param attempt number of the attempt since the last success
     */
    waitMs(attempt: number): number {
      if (!isRefused) return Math.min(WAIT_MIN_MS * attempt, downMaxMs);
      // The exponent is limited to avoid an overflow.
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
 * Limits the attempts of clients that connect on every call. After a refusal, calls fail until a delay has elapsed.
 * @param nowMs returns the time of a monotonic clock
 */
export function createConnectGate(store: StoreName, nowMs: () => number = () => performance.now()) {
  const refusals = new Map<string, Refusal>();
  return {
    /** Returns the current refusal for an address (`host:port`), or null if clients may connect. */
    refusalOf(address: string): Error | null {
      const refusal = refusals.get(address);
      return refusal !== undefined && nowMs() < refusal.untilMs ? refusal.fault : null;
    },
    /** Records the result of an attempt. @param fault null after a success */
    settled(address: string, fault: Error | null): void {
      if (fault === null || !explainConnection(store, fault).isRefusal) return void refusals.delete(address);
      // While the store is unavailable, callers use their own delays.
      const pace = createReconnectPace(store, 0);
      const refusal = refusals.get(address) ?? { pace, attempts: 0, fault, untilMs: 0 };
      refusals.set(address, refusal);
      // Concurrent attempts count as one.
      if (nowMs() < refusal.untilMs) return;
      refusal.pace.recordFault(fault);
      refusal.attempts++;
      refusal.fault = fault;
      refusal.untilMs = nowMs() + refusal.pace.waitMs(refusal.attempts);
    },
  };
}
