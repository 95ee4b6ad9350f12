import { TICK_HEADER } from '@playline/contracts';
import type { Logger, Metrics } from '@playline/runtime';
import type { Producer, StreamRecord } from '@playline/stream';

/** Whether a record is a tick: it has no value, and has the tick header. */
export const isTick = ({ value, headers }: Pick<StreamRecord, 'value' | 'headers'>): boolean =>
  value === null && Object.hasOwn(headers, TICK_HEADER);

/** Resolves with the log time when the tick is in the partition's log. */
type SendTick = (partition: number) => Promise<number>;

/** No client can read the broker's clock: the log time of a tick shows up to which time the partition is complete. */
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
/** While only ticks arrive, each tick waits twice as long as the previous tick, up to this limit. */
export const IDLE_MAX_MS = 64_000;
const CHECK_MS = 250;
/** Check interval while all partitions are idle, and for lost watermarks in Redis. */
const REST_CHECK_MS = 1_000;

interface Quiet {
  /** When a record was last read or a tick was last sent; by `performance.now`. */
  readonly sinceMs: number;
  /** Time until the next tick is due. */
  readonly waitMs: number;
}

/** Tracks which partitions are idle, and when the next tick of each is due. */
export class IdlePartitions {
  readonly #quiet = new Map<number, Quiet>();

  /** A record was read, or the last tick failed: the next tick is due in a second. */
  recordRead(partition: number, nowMs: number): void {
    this.#quiet.set(partition, { sinceMs: nowMs, waitMs: IDLE_MS });
  }

  tickSent(partition: number, nowMs: number): void {
    const before = this.#quiet.get(partition)?.waitMs ?? IDLE_MS / 2;
    this.#quiet.set(partition, { sinceMs: nowMs, waitMs: Math.min(2 * before, IDLE_MAX_MS) });
  }

  /** True when none of `current` gets its next tick soon, unless a record arrives or a watermark is lost. */
  areIdle(current: readonly number[]): boolean {
    return current.length > 0 && current.every((partition) => this.#isAtRest(partition));
  }

  #isAtRest(partition: number): boolean {
    return (this.#quiet.get(partition)?.waitMs ?? 0) > IDLE_MS;
  }

  /** The next tick is due immediately, as for a new partition. */
  forget(partition: number): void {
    this.#quiet.delete(partition);
  }

  /**
   * Returns partitions of `current` (assigned, with nothing left to read or write) that were idle long enough. If there are any,
   * idle partitions that have waited half their time are added: a tick wakes the whole process.
   */
  due(current: readonly number[], nowMs: number): number[] {
    const hasWaited = (part: number) => (partition: number) => {
      const quiet = this.#quiet.get(partition);
      return quiet === undefined || nowMs - quiet.sinceMs >= quiet.waitMs * part;
    };
    if (!current.some(hasWaited(1))) return [];
    return current.filter((partition) => hasWaited(this.#isAtRest(partition) ? 0.5 : 1)(partition));
  }
}

/**
 * Creates the check for lost watermarks: missing, or lower than at the last check. It runs at most once per second,
 * however often it is called.
 */
function createFindLost(readWatermark: TicksOptions['readWatermark'], onLost: (partition: number) => void) {
  const known = new Map<number, number>();
  let checkedMs = performance.now();
  return async (partitions: readonly number[]): Promise<void> => {
    if (performance.now() - checkedMs < REST_CHECK_MS) return;
    checkedMs = performance.now();
    const check = async (partition: number) => {
      const before = known.get(partition);
      const now = await readWatermark(partition).catch(() => undefined);
      // While Redis does not respond, a tick would not help.
      if (now === undefined) return;
      if (now !== null) known.set(partition, now);
      if (before !== undefined && (now === null || now < before)) onLost(partition);
    };
    await Promise.all(partitions.map(check));
  };
}

export interface TicksOptions {
  readonly topic: string;
  /** Waiting records of this process's partitions, by `topic/partition`. */
  readonly lag: () => ReadonlyMap<string, number>;
  readonly sendTick: SendTick;
  /** The published watermark of a partition, null for none. @throws Error while it cannot be read */
  readonly readWatermark: (partition: number) => Promise<number | null>;
  readonly logger?: Logger;
  readonly metrics: Metrics;
}

export type Ticks = ReturnType<typeof openTicks>;

/**
 * Sends ticks to idle partitions until it is closed: less and less often while no record arrives, and immediately when
 * the watermark was lost. A tick that fails is sent again a second later.
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
      if (faultReason === null) logger?.warn({ error, topic, partition }, 'sending a tick failed');
      faultReason = `idle partitions get no ticks: ${error instanceof Error ? error.message : String(error)}`;
    }
  };
  const track = (work: Promise<void>) => {
    const tracked = work.finally(() => running.delete(tracked));
    running.add(tracked);
  };
  const current = () => currentOf(topic, lag());
  const findLost = createFindLost(readWatermark, (partition) => {
    idle.forget(partition);
    schedule.runSoon();
  });
  const schedule = openSchedule(() => {
    for (const partition of idle.due(current(), performance.now())) {
      idle.tickSent(partition, performance.now());
      track(send(partition));
    }
    track(findLost(current()));
    return idle.areIdle(current()) ? REST_CHECK_MS : CHECK_MS;
  });
  return {
    recordRead: (partition: number) => {
      idle.recordRead(partition, performance.now());
      schedule.runSoon();
    },
    /** False when the last tick could not be sent: the watermarks of idle partitions do not move. */
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

/** Calls `check`, which returns after how long to call it next. `runSoon` moves a distant call forward. */
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

/** Partitions of a topic that have nothing left to read or write. */
function currentOf(topic: string, lag: ReadonlyMap<string, number>): number[] {
  const prefix = `${topic}/`;
  const current = [...lag].filter(([name, waiting]) => name.startsWith(prefix) && waiting === 0);
  return current.map(([name]) => Number(name.slice(prefix.length)));
}
