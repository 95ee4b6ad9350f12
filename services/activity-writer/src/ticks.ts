import { TICK_HEADER } from '@playline/contracts';
import type { Logger, Metrics } from '@playline/runtime';
import type { Producer, StreamRecord } from '@playline/stream';

/** A tick is a record without a value that has the tick header. */
export const isTick = ({ value, headers }: Pick<StreamRecord, 'value' | 'headers'>): boolean =>
  value === null && Object.hasOwn(headers, TICK_HEADER);

/** Resolves with the tick's log time after the tick is in the log. */
type SendTick = (partition: number) => Promise<number>;

/** Clients cannot read the broker's clock, but a partition is complete up to the log time of its latest tick. */
export function createSendTick(producer: Pick<Producer, 'sendForOffset'>, topic: string): SendTick {
  return async (partition) => {
    const tick = { topic, partition, key: null, value: null, headers: { [TICK_HEADER]: '' } };
    const { loggedAtMs } = await producer.sendForOffset(tick);
    if (loggedAtMs === null) throw new Error(`${topic} requires broker times: message.timestamp.type=LogAppendTime`);
    return loggedAtMs;
  };
}

/** A partition without records for this long gets a tick. */
export const IDLE_MS = 1_000;
/** While no records arrive, the tick interval doubles up to this limit. */
export const IDLE_MAX_MS = 64_000;
const CHECK_MS = 250;
/** How often partitions are checked while all of them are idle, and how often watermarks in Redis are checked. */
const IDLE_CHECK_MS = 1_000;

interface Idleness {
  /** When a record was last read or a tick was last sent, from `performance.now()`. */
  readonly sinceMs: number;
  /** How long after `sinceMs` the next tick is due. */
  readonly waitMs: number;
}

/** Tracks which partitions are idle and when their next ticks are due. */
export class IdlePartitions {
  readonly #idleness = new Map<number, Idleness>();

  /** Schedules the next tick a second from now, after a record was read or a tick failed. */
  recordRead(partition: number, nowMs: number): void {
    this.#idleness.set(partition, { sinceMs: nowMs, waitMs: IDLE_MS });
  }

  tickSent(partition: number, nowMs: number): void {
    const before = this.#idleness.get(partition)?.waitMs ?? IDLE_MS / 2;
    this.#idleness.set(partition, { sinceMs: nowMs, waitMs: Math.min(2 * before, IDLE_MAX_MS) });
  }

  /** Returns true if no partition has a tick due soon, unless a record arrives or a watermark is lost. */
  areIdle(caughtUp: readonly number[]): boolean {
    return caughtUp.length > 0 && caughtUp.every((partition) => this.#isIdle(partition));
  }

  #isIdle(partition: number): boolean {
    return (this.#idleness.get(partition)?.waitMs ?? 0) > IDLE_MS;
  }

  /** Makes the next tick due immediately, as for a new partition. */
  forget(partition: number): void {
    this.#idleness.delete(partition);
  }

  /**
   * Returns the partitions whose tick is due. If there are any, idle partitions past half their interval are included,
   * because every tick wakes up the whole process. @param caughtUp assigned partitions with nothing left to read or
   * write
   */
  due(caughtUp: readonly number[], nowMs: number): number[] {
    const hasWaited = (fraction: number) => (partition: number) => {
      const idleness = this.#idleness.get(partition);
      return idleness === undefined || nowMs - idleness.sinceMs >= idleness.waitMs * fraction;
    };
    if (!caughtUp.some(hasWaited(1))) return [];
    return caughtUp.filter((partition) => hasWaited(this.#isIdle(partition) ? 0.5 : 1)(partition));
  }
}

/** Creates a check for watermarks that are missing or have decreased. Runs at most once per second. */
function createFindLost(readWatermark: TicksOptions['readWatermark'], onLost: (partition: number) => void) {
  const watermarks = new Map<number, number>();
  let checkedMs = performance.now();
  return async (partitions: readonly number[]): Promise<void> => {
    if (performance.now() - checkedMs < IDLE_CHECK_MS) return;
    checkedMs = performance.now();
    const check = async (partition: number) => {
      const before = watermarks.get(partition);
      const now = await readWatermark(partition).catch(() => undefined);
      // While Redis is unavailable, a tick would not restore the watermark.
      if (now === undefined) return;
      if (now !== null) watermarks.set(partition, now);
      if (before !== undefined && (now === null || now < before)) onLost(partition);
    };
    await Promise.all(partitions.map(check));
  };
}

export interface TicksOptions {
  readonly topic: string;
  /** Returns the unread records of this process's partitions, by `topic/partition`. */
  readonly lag: () => ReadonlyMap<string, number>;
  readonly sendTick: SendTick;
  /** Returns a partition's published watermark, or null if there is none. @throws Error while Redis is unavailable */
  readonly readWatermark: (partition: number) => Promise<number | null>;
  readonly logger?: Logger;
  readonly metrics: Metrics;
}

export type Ticks = ReturnType<typeof openTicks>;

/**
 * Sends ticks to idle partitions until closed: at growing intervals while no record arrives, and immediately after a
 * watermark was lost. A failed tick is retried after a second.
 */
export function openTicks({ topic, lag, sendTick, readWatermark, logger, metrics }: TicksOptions) {
  const ticksTotal = metrics.counter('playline_activity_writer_ticks_total', 'Ticks for idle partitions', ['outcome']);
  const idle = new IdlePartitions();
  const running = new Set<Promise<void>>();
  let faultReason: string | null = null;
  const send = async (partition: number) => {
    try {
      await sendTick(partition);
      ticksTotal.inc({ outcome: 'sent' });
      faultReason = null;
    } catch (error) {
      ticksTotal.inc({ outcome: 'failed' });
      idle.recordRead(partition, performance.now());
      if (faultReason === null) logger?.warn({ error, topic, partition }, 'tick failed; retrying in a second');
      faultReason = `ticks cannot be sent: ${error instanceof Error ? error.message : String(error)}`;
    }
  };
  const track = (work: Promise<void>) => {
    const tracked = work.finally(() => running.delete(tracked));
    running.add(tracked);
  };
  const caughtUp = () => findCaughtUp(topic, lag());
  const findLost = createFindLost(readWatermark, (partition) => {
    idle.forget(partition);
    schedule.runSoon();
  });
  const schedule = openSchedule(() => {
    for (const partition of idle.due(caughtUp(), performance.now())) {
      idle.tickSent(partition, performance.now());
      track(send(partition));
    }
    track(findLost(caughtUp()));
    return idle.areIdle(caughtUp()) ? IDLE_CHECK_MS : CHECK_MS;
  });
  return {
    recordRead: (partition: number) => {
      idle.recordRead(partition, performance.now());
      schedule.runSoon();
    },
    /** False if the last tick failed. The watermarks of idle partitions then do not advance. */
    get working() {
      return faultReason === null;
    },
    reasons: (): Readonly<Record<string, string>> => (faultReason === null ? {} : { ticks: faultReason }),
    close: async () => {
      schedule.close();
      await Promise.all(running);
    },
  };
}

/** Calls `check` repeatedly. `check` returns the delay before the next call; `runSoon` shortens a long delay. */
function openSchedule(check: () => number): { runSoon(): void; close(): void } {
  let timer = setTimeout(run, CHECK_MS);
  let isSlow = false;
  let isClosed = false;
  function run() {
    const waitMs = check();
    isSlow = waitMs > CHECK_MS;
    timer = setTimeout(run, waitMs);
  }
  return {
    runSoon: () => {
      if (!isSlow || isClosed) return;
      clearTimeout(timer);
      isSlow = false;
      timer = setTimeout(run, CHECK_MS);
    },
    close: () => {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}

/** Returns the partitions of a topic that have nothing left to read or write. */
function findCaughtUp(topic: string, lag: ReadonlyMap<string, number>): number[] {
  const prefix = `${topic}/`;
  const caughtUp = [...lag].filter(([name, waiting]) => name.startsWith(prefix) && waiting === 0);
  return caughtUp.map(([name]) => Number(name.slice(prefix.length)));
}
