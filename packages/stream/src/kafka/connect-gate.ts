import { createReconnectPace, explainConnection, type ReconnectPace } from '@playline/errors';

/** Brokers that are merely away are asked as often as callers ask: those have waits of their own. */
const AWAY_WAIT_MS = 0;

/**
 * Keeps clients from knocking at brokers that refuse them (TLS or login): a broker that did is not connected to again
 * before a wait that doubles up to five seconds, and whoever asks meanwhile hears the same refusal at once.
 */
export interface ConnectGate {
  /** The refusal that still stands for a broker (`host:port`), or null when it may be connected to. */
  refusalOf(broker: string): Error | null;
  /** Told how an attempt ended; null for well. */
  settled(broker: string, fault: Error | null): void;
}

interface Refusal {
  readonly pace: ReconnectPace;
  attempts: number;
  fault: Error;
  untilMs: number;
}

/** @param nowMs a clock that never goes back */
export function createConnectGate(nowMs: () => number = () => performance.now()): ConnectGate {
  const refusals = new Map<string, Refusal>();
  return {
    refusalOf(broker) {
      const refusal = refusals.get(broker);
      return refusal !== undefined && nowMs() < refusal.untilMs ? refusal.fault : null;
    },
    settled(broker, fault) {
      if (fault === null || !explainConnection('Kafka', fault).isRefusal) return void refusals.delete(broker);
      const refusal = refusals.get(broker) ?? {
        pace: createReconnectPace('Kafka', AWAY_WAIT_MS),
        attempts: 0,
        fault,
        untilMs: 0,
      };
      refusals.set(broker, refusal);
      // Others were on their way meanwhile: one wait is enough for all of them.
      if (nowMs() < refusal.untilMs) return;
      refusal.pace.heard(fault);
      refusal.attempts++;
      refusal.fault = fault;
      refusal.untilMs = nowMs() + refusal.pace.waitMs(refusal.attempts);
    },
  };
}
