import { explainConnection, type StoreName } from './explain-fault.ts';

/** Where sentences are logged; a service's logger fits. */
export interface FaultLog {
  warn(fields: object, message: string): void;
}

/** What a service knows about connections that fail. */
export interface ConnectionFaults {
  /** Returns the listener for all clients of one store: call it with every fault. */
  listenerOf(store: StoreName): (fault: unknown) => void;
  /**
   * Wraps a check of a store. As soon as the check succeeds, earlier faults of that store are no longer given as
   * reasons.
   */
  clearingOnSuccess(store: StoreName, holds: () => Promise<boolean>): () => Promise<boolean>;
  /** For each store why it cannot be used, if that was reported within the last half minute. */
  reasons(): Readonly<Record<string, string>>;
}

/** A refused client retries for hours. An operator needs the sentence when looking at the log, not for each attempt. */
const REPEAT_MS = 60_000;
/** Longer than the longest wait between two attempts, so that the reason stays until the store can be used again. */
const FRESH_MS = 30_000;

interface Known {
  readonly sentence: string;
  heardMs: number;
  loggedMs: number;
  /** Faults since the sentence was logged. */
  faults: number;
}

/**
 * Collects the faults of all clients. A refusal (TLS or login) is logged as a sentence, at most once a minute for each
 * store and sentence; a store that is only away appears in `reasons` alone, because its clients log that themselves.
 * @param nowMs a clock that never goes back
 */
export function createConnectionFaults(log: FaultLog, nowMs: () => number = () => performance.now()): ConnectionFaults {
  const stores = new Map<StoreName, Map<string, Known>>();
  const hear = (store: StoreName, fault: unknown) => {
    const { message: sentence, isRefusal } = explainConnection(store, fault);
    const sentences = stores.get(store) ?? new Map<string, Known>();
    stores.set(store, sentences);
    const heardMs = nowMs();
    const known = sentences.get(sentence) ?? { sentence, heardMs, loggedMs: Number.NEGATIVE_INFINITY, faults: 0 };
    sentences.set(sentence, known);
    known.heardMs = heardMs;
    known.faults++;
    if (!isRefusal || heardMs - known.loggedMs < REPEAT_MS) return;
    log.warn({ store, faults: known.faults }, sentence);
    known.loggedMs = heardMs;
    known.faults = 0;
  };
  return {
    listenerOf: (store) => (fault) => hear(store, fault),
    clearingOnSuccess: (store, holds) => async () => {
      const isUsable = await holds();
      // The times of the log stay: a store that comes and goes is logged no more often.
      if (isUsable) for (const known of stores.get(store)?.values() ?? []) known.heardMs = Number.NEGATIVE_INFINITY;
      return isUsable;
    },
    reasons() {
      const found: Record<string, string> = {};
      for (const [store, sentences] of stores) {
        const last = [...sentences.values()].sort((a, b) => b.heardMs - a.heardMs)[0];
        if (last !== undefined && nowMs() - last.heardMs <= FRESH_MS) found[store] = last.sentence;
      }
      return found;
    },
  };
}

/** A person corrects a refusal: one attempt in five seconds notices it soon enough and costs the server little. */
const REFUSED_WAIT_MAX_MS = 5_000;
const WAIT_MIN_MS = 50;

/** How long a client waits before it connects again. */
export interface ReconnectPace {
  /** Call it with every fault of the connection. */
  failed(fault: unknown): void;
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
    failed(fault) {
      ({ isRefusal: isRefused } = explainConnection(store, fault));
    },
    waitMs(attempt) {
      if (!isRefused) return Math.min(WAIT_MIN_MS * attempt, awayMaxMs);
      // The exponent is bounded: hours of attempts must not overflow into no wait at all.
      return Math.min(WAIT_MIN_MS * 2 ** Math.min(attempt, 10), REFUSED_WAIT_MAX_MS);
    },
  };
}

/** A store that is only away is tried whenever a caller calls: callers have their own waits. */
const AWAY_WAIT_MS = 0;

/**
 * Limits the attempts of clients that connect with every call to a store that refuses them (TLS or login). It is tried
 * again after a wait that doubles up to five seconds; calls before that fail at once with the same refusal.
 */
export interface ConnectGate {
  /** The refusal that still counts for an address (`host:port`), or null when it may be connected to. */
  refusalOf(address: string): Error | null;
  /** Call it after every attempt; null when it succeeded. */
  settled(address: string, fault: Error | null): void;
}

interface Refusal {
  readonly pace: ReconnectPace;
  attempts: number;
  fault: Error;
  untilMs: number;
}

/** @param nowMs a clock that never goes back */
export function createConnectGate(store: StoreName, nowMs: () => number = () => performance.now()): ConnectGate {
  const refusals = new Map<string, Refusal>();
  return {
    refusalOf(address) {
      const refusal = refusals.get(address);
      return refusal !== undefined && nowMs() < refusal.untilMs ? refusal.fault : null;
    },
    settled(address, fault) {
      if (fault === null || !explainConnection(store, fault).isRefusal) return void refusals.delete(address);
      const pace = createReconnectPace(store, AWAY_WAIT_MS);
      const refusal = refusals.get(address) ?? { pace, attempts: 0, fault, untilMs: 0 };
      refusals.set(address, refusal);
      // Others were on their way meanwhile: one wait is enough for all of them.
      if (nowMs() < refusal.untilMs) return;
      refusal.pace.failed(fault);
      refusal.attempts++;
      refusal.fault = fault;
      refusal.untilMs = nowMs() + refusal.pace.waitMs(refusal.attempts);
    },
  };
}
