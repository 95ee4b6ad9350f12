import { setTimeout as delay } from 'node:timers/promises';
import { untilNextLook } from '@playline/access-keys';
import type { Closable, Logger } from '@playline/runtime';

export interface CatchUpParts {
  /** What Redis holds here, for the log. */
  name: string;
  /** Brings in what Redis may have lost. @returns records read; null when nothing is lacking or nothing can be said */
  run(): Promise<number | null>;
  /** True for the fault of a question that Redis cannot answer until then. */
  isLagging(fault: unknown): boolean;
  logger: Logger;
}

/** Keeps a view in Redis level with its log over every start of Redis, whoever notices first. */
export interface CatchUp extends Closable {
  /** True once the view was looked at with success: from then on its questions are answered. */
  readonly seen: boolean;
  /**
   * Asks; a question that cannot be answered yet is asked once more behind a catch-up that began after it. Where that was
   * in vain, as in a new deployment whose log is empty, and while the log cannot be had, nobody waits for another.
   * @throws as the question, or as the catch-up
   */
  ask<T>(question: () => Promise<T>): Promise<T>;
}

/** How soon a start of Redis is noticed that no request runs into: one command of ten microseconds each time. */
const LOOK_EVERY_MS = 250;
/** Kafka or Redis is away, or a new deployment has no key yet: asked calmly. */
const RETRY_MS = 1_000;

/** Looks by itself as well as at the first question that Redis cannot answer; one at a time. */
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
      // Told once an outage, not once a second.
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
        // It began before the question, and may have looked before Redis lost what is asked for.
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
