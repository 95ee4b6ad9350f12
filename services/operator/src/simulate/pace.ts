import { setTimeout as delay } from 'node:timers/promises';

/** Decides when the next batch may be sent. */
export interface Pace {
  /** Resolves when `messages` more messages are due, however slow earlier answers are (open loop). */
  due(messages: number): Promise<void>;
}

/**
 * An even rate from the first call on; a sender that is late catches up.
 * @param rate messages per second; 0: no limit
 */
export function createPace(rate: number): Pace {
  if (rate === 0) return { due: () => Promise.resolve() };
  let startedAt: number | null = null;
  let promised = 0;
  return {
    due: async (messages) => {
      startedAt ??= performance.now();
      const waitMs = startedAt + (promised / rate) * 1000 - performance.now();
      promised += messages;
      // Timers have a resolution of a millisecond; shorter waits are added to the next.
      if (waitMs >= 1) await delay(waitMs);
    },
  };
}

/** Runs tasks of one lane in sequence and lanes in parallel, and limits the number of started tasks. */
export interface Lanes {
  /** Resolves when there is room for the task, and queues it; `drained` reports its faults. */
  start(lane: number, task: () => Promise<void>): Promise<void>;
  /** Resolves when every task ended; rejects with the first fault. */
  drained(): Promise<void>;
  readonly running: number;
}

/** @param tasksMax started and unfinished tasks of all lanes: limits memory when the service is slow */
export function createLanes(tasksMax: number): Lanes {
  const tails = new Map<number, Promise<void>>();
  const waiting: (() => void)[] = [];
  let running = 0;
  let fault: unknown = null;
  const leave = () => {
    running--;
    waiting.shift()?.();
  };
  return {
    get running() {
      return running;
    },
    start: async (lane, task) => {
      while (running >= tasksMax) await new Promise<void>((resolve) => waiting.push(resolve));
      running++;
      const tail = (tails.get(lane) ?? Promise.resolve()).then(task).catch((error: unknown) => {
        fault ??= error;
      });
      tails.set(lane, tail.then(leave));
    },
    drained: async () => {
      await Promise.all(tails.values());
      if (fault !== null) throw fault;
    },
  };
}
