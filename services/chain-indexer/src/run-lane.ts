import { setTimeout as delay } from 'node:timers/promises';
import type { Closable, Logger } from '@playline/runtime';
import type { ChainLane, LaneStep } from './lane.ts';
import { NodesFault } from './node-pool.ts';

/** A lane that runs. */
export interface RunningLane extends Closable {
  readonly chain: string;
  /** False while it is halted, and when it has done nothing for a while because nodes or brokers do not let it. */
  readonly working: boolean;
  /** False while another indexer has the chain. */
  readonly active: boolean;
  /** Why it does not work; null while it does. */
  readonly reason: string | null;
  /** Since when nodes or brokers have let it do nothing, although it was to look. */
  readonly silentMs: number;
}

export interface RunLaneOptions {
  readonly chain: string;
  readonly lane: Pick<ChainLane, 'step' | 'close' | 'isHalted'>;
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
  private readonly options: Pick<RunLaneOptions, 'chain' | 'pollMs' | 'logger'>;
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
    return Math.max(0, this.nowMs() - this.dueAtMs);
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
    logger?.warn({ chain, reason: this.reason }, 'the chain is not indexed further for now');
  }
}

/** Steps until it is closed; what fails is tried again, ever more seldom. */
export function openLane(options: RunLaneOptions): RunningLane {
  const { chain, lane, nowMs = () => performance.now() } = options;
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
    get reason() {
      if (lane.isHalted) return `reorganised below what is final: ${course.reason}`;
      if (!course.active) return 'another indexer has it: standing by';
      const isSilent = course.silentMs >= SILENT_MAX_MS;
      return course.reason ?? (isSilent ? 'nothing was heard of nodes or brokers for 30 s' : null);
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
