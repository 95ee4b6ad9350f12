import type { Logger } from '@playline/runtime';

/** First time between two lines about the same attempts; it doubles up to the last. */
const DISTANCE_MIN_MS = 1_000;
/** Six lines an hour: enough to follow, and a whole night of them can still be read. */
const DISTANCE_MAX_MS = 600_000;

/** Decides when repeated failures are logged: the first at once, then at growing intervals. */
export class RetryNotice {
  #attempts = 0;
  #sinceMs = 0;
  #dueMs = 0;
  #distanceMs = DISTANCE_MIN_MS;

  /**
   * Counts a failed attempt.
   * @returns how many there were and for how long when it is time for a line; else null
   */
  next(): { attempts: number; forSeconds: number } | null {
    const nowMs = performance.now();
    if (this.#attempts++ === 0) this.#sinceMs = nowMs;
    else if (nowMs < this.#dueMs) return null;
    this.#dueMs = nowMs + this.#distanceMs;
    this.#distanceMs = Math.min(DISTANCE_MAX_MS, this.#distanceMs * 2);
    return { attempts: this.#attempts, forSeconds: Math.round((nowMs - this.#sinceMs) / 1_000) };
  }
}

/**
 * Longer than the longest wait between two attempts. A failure after such a pause is a new incident, and is logged at
 * once.
 */
const INCIDENT_END_MS = 60_000;
/** Reasons with changing texts could otherwise be kept for ever. */
const INCIDENTS_MAX = 100;

interface Incident {
  readonly notice: RetryNotice;
  readonly partitions: Set<string>;
  lastMs: number;
}

/** What one attempt failed at. */
export interface FailedAttempt {
  readonly topic: string;
  readonly partition: number;
  readonly level: 'warn' | 'error';
  readonly error: unknown;
  /** Further fields of the line, about the partition that it names. */
  readonly fields?: Readonly<Record<string, unknown>>;
}

const toReason = (error: unknown) => (error instanceof Error ? error.message : String(error));
/** Lines that differ in numbers only (offsets, ports, durations) count as the same. */
const toShape = (text: string) => text.replace(/\d+/g, '#');

/**
 * Logs failed attempts of all partitions of a process together: a store that refuses one partition refuses the others
 * too, and a person needs to read the reason once. The first line comes at once, then counts at growing intervals.
 */
export class RetryLog {
  readonly #logger: Logger;
  readonly #stories = new Map<string, Incident>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  report({ topic, partition, level, error, fields }: FailedAttempt, message: string): void {
    const reason = toReason(error);
    const story = this.#storyOf(toShape(`${level} ${message} ${reason}`));
    story.partitions.add(`${topic}/${partition}`);
    const told = story.notice.next();
    if (told === null) return;
    this.#logger[level]({ ...told, partitions: story.partitions.size, topic, partition, ...fields, reason }, message);
    // The stack is logged at level debug only.
    this.#logger.debug({ error, topic, partition }, message);
  }

  #storyOf(name: string): Incident {
    const nowMs = performance.now();
    const known = this.#stories.get(name);
    const goesOn = known !== undefined && nowMs - known.lastMs < INCIDENT_END_MS;
    const story = goesOn ? known : { notice: new RetryNotice(), partitions: new Set<string>(), lastMs: nowMs };
    story.lastMs = nowMs;
    if (this.#stories.size >= INCIDENTS_MAX && !goesOn) this.#stories.clear();
    this.#stories.set(name, story);
    return story;
  }
}

const logs = new WeakMap<Logger, RetryLog>();

/** The log of retries that belongs to a logger; null when nothing is logged. */
export function retryLogOf(logger: Logger | undefined): RetryLog | null {
  if (logger === undefined) return null;
  const log = logs.get(logger) ?? new RetryLog(logger);
  logs.set(logger, log);
  return log;
}
