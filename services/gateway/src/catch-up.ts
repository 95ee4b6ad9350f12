import { setTimeout as delay } from 'node:timers/promises';
import { untilNextLook } from '@playline/access-keys';
import type { Closable, Logger } from '@playline/runtime';

export interface CatchUpParts {
  /** What the view holds, as log lines call it. */
  name: string;
  /** Reads from the log what Redis may have lost. @returns records read; null when nothing is missing, or it cannot be told whether */
  run(): Promise<number | null>;
  /** True for the fault with which a view says that it may have lost something. */
  isLagging(fault: unknown): boolean;
  logger: Logger;
}

/** Brings a view in Redis up to date after every start of Redis, whether the timer or a question notices first. */
export interface CatchUp extends Closable {
  /** True once the view has been compared with its log: from then on questions are answered. */
  readonly seen: boolean;
  /**
   * Asks the view. If the view says that it may have lost something, the log is read, and the question asked once more.
   * Nobody waits for that where it cannot help: while the log cannot be read, and where reading it changed nothing, as in
   * a new deployment whose log is empty.
   * @throws as the question, or as the reading of the log
   */
  ask<T>(question: () => Promise<T>): Promise<T>;
}

/** How soon a start of Redis is noticed when no request meets it. Each look is one command of ten microseconds. */
const LOOK_EVERY_MS = 500;
/** Kafka or Redis is away, or a new deployment has no key yet: asked calmly. */
const RETRY_MS = 1_000;

/** Looks twice a second, and at the first question that Redis cannot answer. One reading of the log at a time. */
export function openCatchUp({ name, run, isLagging, logger }: CatchUpParts): CatchUp {
  let running: Promise<void> | null = null;
  let seen = false;
  let hasFailed = false;
  const once = async () => {
    let records: number | null;
    try {
      records = await run();
    } catch (fault) {
      hasFailed = true;
      throw fault;
    }
    seen = true;
    hasFailed = false;
    if (records !== null) logger.info({ records }, `${name} in Redis are level with the log again`);
  };
  const catchUp = () => {
    running ??= once().finally(() => {
      running = null;
    });
    return running;
  };
  const closed = new AbortController();
  const watch = async () => {
    let wasTold = false;
    while (!closed.signal.aborted) {
      const error = await catchUp().then(
        () => null,
        (fault: unknown) => fault,
      );
      // One line for each outage, not one a second.
      if (error !== null && !wasTold) logger.warn({ error }, `${name} in Redis cannot be compared with the log`);
      wasTold = error !== null;
      const waitMs = error === null ? untilNextLook(LOOK_EVERY_MS) : RETRY_MS;
      await delay(waitMs, undefined, { signal: closed.signal }).catch(() => {});
    }
  };
  void watch();
  return {
    get seen() {
      return seen;
    },
    ask: createAsk({ catchUp, isLagging, isRunning: () => running !== null, hasFailed: () => hasFailed }),
    close: () => closed.abort(),
  };
}

interface AskParts extends Pick<CatchUpParts, 'isLagging'> {
  /** Joins the one that runs, or begins one. */
  catchUp(): Promise<void>;
  isRunning(): boolean;
  /** Whether the last one did. */
  hasFailed(): boolean;
}

function createAsk({ catchUp, isLagging, isRunning, hasFailed }: AskParts): CatchUp['ask'] {
  /** The last reading of the log changed nothing. Until a question is answered, none waits for another reading. */
  let wasVain = false;
  const answered = async <T>(question: () => Promise<T>): Promise<T> => {
    const answer = await question();
    wasVain = false;
    return answer;
  };
  return async (question) => {
    try {
      return await answered(question);
    } catch (fault) {
      if (!isLagging(fault) || wasVain || hasFailed()) throw fault;
    }
    if (isRunning()) {
      await catchUp();
      try {
        return await answered(question);
      } catch (fault) {
        // That reading began before the question, perhaps before Redis lost what is asked for: read once more.
        if (!isLagging(fault)) throw fault;
      }
    }
    await catchUp();
    try {
      return await answered(question);
    } catch (fault) {
      wasVain = isLagging(fault);
      throw fault;
    }
  };
}
