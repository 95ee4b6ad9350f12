import type { Logger } from '@playline/runtime';

/** First distance between two lines about the same attempts; doubled up to the last. */
const DISTANCE_MIN_MS = 1_000;
/** Six lines an hour: enough for whoever looks, and a night of them can still be read. */
const DISTANCE_MAX_MS = 600_000;

/** Decides when attempts that fail again and again are told: the first at once, then at growing distances. */
export class RetryNotice {
  #attempts = 0;
  #sinceMs = 0;
  #dueMs = 0;
  #distanceMs = DISTANCE_MIN_MS;

  /** Counts a failed attempt. @returns how many there were and for how long, when it is time for a line; else null */
  next(): { attempts: number; forSeconds: number } | null {
    const nowMs = performance.now();
    if (this.#attempts++ === 0) this.#sinceMs = nowMs;
    else if (nowMs < this.#dueMs) return null;
    this.#dueMs = nowMs + this.#distanceMs;
    this.#distanceMs = Math.min(DISTANCE_MAX_MS, this.#distanceMs * 2);
    return { attempts: this.#attempts, forSeconds: Math.round((nowMs - this.#sinceMs) / 1_000) };
  }
}

/** Longer than the longest wait between two attempts: what failed before that is another story, and is told at once. */
const STORY_END_MS = 60_000;
/** Reasons that hold numbers of their own could otherwise be kept for ever. */
const STORIES_MAX = 100;

interface Story {
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
  /** What else the line says, of the partition that it names. */
  readonly fields?: Readonly<Record<string, unknown>>;
}

const toReason = (error: unknown) => (error instanceof Error ? error.message : String(error));
/** Of lines that differ in numbers only (offsets, ports, durations) one is enough. */
const toShape = (text: string) => text.replace(/\d+/g, '#');

/**
 * Lines about attempts that fail, of all partitions of a process together: a store that refuses one of them refuses the
 * others, and a person reads the reason once. The first line comes at once, then counts at distances that grow.
 */
export class RetryLog {
  readonly #logger: Logger;
  readonly #stories = new Map<string, Story>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  tell({ topic, partition, level, error, fields }: FailedAttempt, message: string): void {
    const reason = toReason(error);
    const story = this.#storyOf(toShape(`${level} ${message} ${reason}`));
    story.partitions.add(`${topic}/${partition}`);
    const told = story.notice.next();
    if (told === null) return;
    this.#logger[level]({ ...told, partitions: story.partitions.size, topic, partition, ...fields, reason }, message);
    // Where it came from is for whoever asks for it.
    this.#logger.debug({ error, topic, partition }, message);
  }

  #storyOf(name: string): Story {
    const nowMs = performance.now();
    const known = this.#stories.get(name);
    const goesOn = known !== undefined && nowMs - known.lastMs < STORY_END_MS;
    const story = goesOn ? known : { notice: new RetryNotice(), partitions: new Set<string>(), lastMs: nowMs };
    story.lastMs = nowMs;
    if (this.#stories.size >= STORIES_MAX && !goesOn) this.#stories.clear();
    this.#stories.set(name, story);
    return story;
  }
}

const logs = new WeakMap<Logger, RetryLog>();

/** The one of a logger; null where nothing is logged. */
export function retryLogOf(logger: Logger | undefined): RetryLog | null {
  if (logger === undefined) return null;
  const log = logs.get(logger) ?? new RetryLog(logger);
  logs.set(logger, log);
  return log;
}
