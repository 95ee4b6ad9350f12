import { nextLook } from '@playline/access-keys';
import type { Closable, Logger } from '@playline/runtime';
import { pause } from '@playline/stores';

export interface CatchUpParts {
  /** The view's content, as log lines name it. */
  name: string;
  /** Reads from the log what Redis may have lost. @returns records read; null when none are known to be missing */
  run(): Promise<number | null>;
  /** True for the fault of a view that may have lost something. */
  isLagging(fault: unknown): boolean;
  logger: Logger;
}

/** Brings a view in Redis up to date after every start of Redis. A timer or a question notices the start. */
export interface CatchUp extends Closable {
  /**
   * Asks the view. If the view may have lost something, the log is read and the question is asked again. The caller
   * does not wait for that where it cannot help: while the log cannot be read, and after a reading that changed nothing
   * (a new deployment has an empty log).
   * @throws whatever the question or the reading of the log throws
   */
  ask<T>(question: () => Promise<T>): Promise<T>;
}

/** How soon a start of Redis is noticed without a request. Each check is one command of ten microseconds. */
const LOOK_EVERY_MS = 500;
/** Wait after a failed comparison: Kafka or Redis is away, or a new deployment has no key yet. */
const RETRY_MS = 1_000;

/** Checks twice a second, and at a question that Redis cannot answer. The log is read once at a time. */
export function openCatchUp({ name, run, isLagging, logger }: CatchUpParts): CatchUp {
  let running: Promise<void> | null = null;
  let hasFailed = false;
  const once = async () => {
    let records: number | null;
    try {
      records = await run();
    } catch (fault) {
      hasFailed = true;
      throw fault;
    }
    hasFailed = false;
    if (records !== null) logger.info({ records }, `${name} in Redis are in sync with the log again`);
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
      if (error === null) await nextLook(LOOK_EVERY_MS, closed.signal);
      else await pause(RETRY_MS, closed.signal);
    }
  };
  void watch();
  return {
    ask: createAsk({ catchUp, isLagging, isRunning: () => running !== null, hasFailed: () => hasFailed }),
    close: () => closed.abort(),
  };
}

interface AskParts extends Pick<CatchUpParts, 'isLagging'> {
  /** Starts a catch-up, or returns the one that is running. */
  catchUp(): Promise<void>;
  isRunning(): boolean;
  /** Whether the last catch-up failed. */
  hasFailed(): boolean;
}

function createAsk({ catchUp, isLagging, isRunning, hasFailed }: AskParts): CatchUp['ask'] {
  /** True after a reading of the log that changed nothing. Until a question is answered, none waits for a reading. */
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
        // The running catch-up may have begun before Redis lost the answer, so the log is read once more.
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
