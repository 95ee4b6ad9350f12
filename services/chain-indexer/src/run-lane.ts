import { setTimeout as delay } from 'node:timers/promises';
import type { Closable, Logger } from '@playline/runtime';
import type { HeadWatch } from './head-watch.ts';
import type { ChainLane, LaneStep } from './lane.ts';
import { NodesFault } from './node-pool.ts';

/** A lane that runs. */
export interface RunningLane extends Closable {
  readonly chain: string;
  /** False while it is halted, and when it has done nothing for a while because nodes or brokers do not let it. */
  readonly working: boolean;
  /** False while another indexer has the chain. */
  readonly active: boolean;
  /** False while no node has had a new block for longer than it may be: it does all that there is to do. */
  readonly moving: boolean;
  /** Why it does not work, or has nothing to do; null while it does. */
  readonly reason: string | null;
  /** Since when nodes or brokers have let it do nothing, although it was to look. */
  readonly silentMs: number;
}

export interface RunLaneOptions {
  readonly chain: string;
  readonly lane: Pick<ChainLane, 'step' | 'close' | 'isHalted' | 'workedAtMs'>;
  /** What is seen of its nodes besides. */
  readonly watch?: Pick<HeadWatch, 'standstill'>;
  readonly pollMs: number;
  readonly logger?: Logger;
  /** A clock that never goes back, in milliseconds. */
  readonly nowMs?: () => number;
}

/** A node may be restarted, or brokers may be away, for so long without anybody being called. */
const SILENT_MAX_MS = 30_000;
/** In a row: fewer are usual. */
const FAULTS_TO_TELL = 3;
const TELL_MS = 60_000;
const WAIT_MIN_MS = 100;
const WAIT_MAX_MS = 30_000;
const STANDING_BY_MS = 1_000;

/** How the steps of a lane have gone. */
class LaneCourse {
  private readonly options: Pick<RunLaneOptions, 'chain' | 'lane' | 'pollMs' | 'logger'>;
  private readonly nowMs: () => number;
  /** When it was to look again after it had worked. */
  private dueAtMs: number;
  private toldAtMs = Number.NEGATIVE_INFINITY;
  private faults = 0;
  active = true;
  reason: string | null = null;

  constructor(options: LaneCourse['options'], nowMs: () => number) {
    this.options = options;
    this.nowMs = nowMs;
    this.dueAtMs = nowMs();
  }

  get silentMs(): number {
    // One step may publish a block of a million logs, in many pieces.
    return Math.max(0, this.nowMs() - Math.max(this.dueAtMs, this.options.lane.workedAtMs));
  }

  /** @returns how long to wait for the next step, in milliseconds */
  done(step: LaneStep): number {
    const wait = step === 'more' ? 0 : step === 'idle' ? this.options.pollMs : STANDING_BY_MS;
    [this.dueAtMs, this.faults, this.reason] = [this.nowMs() + wait, 0, null];
    this.active = step !== 'standing by';
    return wait;
  }

  /** @returns as `done` */
  failed(fault: unknown): number {
    const isRest = fault instanceof NodesFault && fault.cause === null;
    // That all of them rest says nothing of why.
    if (!isRest) this.reason = fault instanceof Error ? fault.message : String(fault);
    this.tell();
    const wait = Math.min(WAIT_MIN_MS * 2 ** Math.min(this.faults++, 20), WAIT_MAX_MS);
    return fault instanceof NodesFault ? Math.min(Math.max(fault.waitMs, WAIT_MIN_MS), wait) : wait;
  }

  private tell(): void {
    const { chain, logger } = this.options;
    const isLong = this.faults > FAULTS_TO_TELL && this.nowMs() - this.toldAtMs > TELL_MS;
    if (this.faults !== FAULTS_TO_TELL && !isLong) return;
    this.toldAtMs = this.nowMs();
    logger?.warn({ chain, reason: this.reason }, 'indexing of this chain has stopped, and is tried again');
  }
}

function toStillReason(still: HeadWatch['standstill']): string | null {
  if (still === null) return null;
  return `no node has had a new block for ${Math.floor(still.ms / 1000)} s: ${still.block} is the latest`;
}

/** Steps until it is closed; what fails is tried again, ever more seldom. */
export function openLane(options: RunLaneOptions): RunningLane {
  const { chain, lane, watch, nowMs = () => performance.now() } = options;
  const stop = new AbortController();
  const course = new LaneCourse(options, nowMs);
  const pause = (ms: number) => delay(ms, undefined, { signal: stop.signal }).catch(() => {});
  const run = async () => {
    while (!stop.signal.aborted) {
      const ms = await lane.step().then(
        (step) => course.done(step),
        (fault: unknown) => course.failed(fault),
      );
      if (ms > 0) await pause(ms);
    }
    await lane.close();
  };
  const running = run();
  return {
    chain,
    get working() {
      return !lane.isHalted && course.silentMs < SILENT_MAX_MS;
    },
    get active() {
      return course.active;
    },
    get moving() {
      return (watch?.standstill ?? null) === null;
    },
    get reason() {
      if (lane.isHalted) return `the chain was reorganised below its last final block: ${course.reason}`;
      if (!course.active) return 'another process indexes this chain: standing by';
      const isSilent = course.silentMs >= SILENT_MAX_MS;
      if (isSilent) return course.reason ?? 'no answer from nodes or brokers for 30 s';
      return course.reason ?? toStillReason(watch?.standstill ?? null);
    },
    get silentMs() {
      return course.silentMs;
    },
    close: async () => {
      stop.abort();
      await running;
    },
  };
}
