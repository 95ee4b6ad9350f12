import type { Logger } from '@playline/runtime';

/** Minimum and maximum interval between two lines about the same incident. The interval doubles after every line. */
const INTERVAL_MIN_MS = 1_000;
const INTERVAL_MAX_MS = 600_000;

/** Decides when repeated failures are logged: the first one immediately, then at growing intervals. */
export class RetryNotice {
  #attempts = 0;
  #sinceMs = 0;
  #dueMs = 0;
  #intervalMs = INTERVAL_MIN_MS;

  /** Counts a failed attempt. @returns the attempts and their duration if a line is due, otherwise null */
  next(): { attempts: number; forSeconds: number } | null {
    const nowMs = performance.now();
    if (this.#attempts++ === 0) this.#sinceMs = nowMs;
    else if (nowMs < this.#dueMs) return null;
    this.#dueMs = nowMs + this.#intervalMs;
    this.#intervalMs = Math.min(INTERVAL_MAX_MS, this.#intervalMs * 2);
    return { attempts: this.#attempts, forSeconds: Math.round((nowMs - this.#sinceMs) / 1_000) };
  }
}

/** More than the longest wait between two attempts. A failure after a longer pause starts a new incident. */
const INCIDENT_END_MS = 60_000;
/** Limits memory if reasons contain variable text. */
const INCIDENTS_MAX = 100;

interface Incident {
  readonly notice: RetryNotice;
  readonly partitions: Set<string>;
  lastMs: number;
}

export interface FailedAttempt {
  readonly topic: string;
  readonly partition: number;
  readonly level: 'warn' | 'error';
  readonly error: unknown;
  readonly fields?: Readonly<Record<string, unknown>>;
}

/** Logs the failed attempts of all partitions together, because a store usually rejects all of them. */
export class RetryLog {
  readonly #logger: Logger;
  readonly #incidents = new Map<string, Incident>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  report({ topic, partition, level, error, fields }: FailedAttempt, message: string): void {
    const reason = error instanceof Error ? error.message : String(error);
    // Reasons that differ only in numbers (offsets, ports, durations) belong to the same incident.
    const incident = this.#incidentOf(`${level} ${message} ${reason}`.replace(/\d+/g, '#'));
    incident.partitions.add(`${topic}/${partition}`);
    const counts = incident.notice.next();
    if (counts === null) return;
    const { size: partitions } = incident.partitions;
    this.#logger[level]({ ...counts, partitions, topic, partition, ...fields, reason }, message);
    // The stack is logged only at level debug.
    this.#logger.debug({ error, topic, partition }, message);
  }

  #incidentOf(name: string): Incident {
    const nowMs = performance.now();
    let incident = this.#incidents.get(name);
    if (incident === undefined || nowMs - incident.lastMs >= INCIDENT_END_MS) {
      if (this.#incidents.size >= INCIDENTS_MAX) this.#incidents.clear();
      incident = { notice: new RetryNotice(), partitions: new Set(), lastMs: nowMs };
      this.#incidents.set(name, incident);
    }
    incident.lastMs = nowMs;
    return incident;
  }
}

const logs = new WeakMap<Logger, RetryLog>();

export function retryLogOf(logger: Logger | undefined): RetryLog | null {
  if (logger === undefined) return null;
  const log = logs.get(logger) ?? new RetryLog(logger);
  logs.set(logger, log);
  return log;
}
