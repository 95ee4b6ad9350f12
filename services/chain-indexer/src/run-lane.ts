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
}

export interface RunLaneOptions {
  readonly chain: string;
  readonly lane: Pick<ChainLane, 'step' | 'close' | 'isHalted'>;
  readonly pollMs: number;
  readonly logger?: Logger;
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
  private workedAtMs = performance.now();
  private toldAtMs = 0;
  private faults = 0;
  active = true;
  reason: string | null = null;

  constructor(options: LaneCourse['options']) {
    this.options = options;
  }

  get silentMs(): number {
    return performance.now() - this.workedAtMs;
  }

  /** @returns how long to wait for the next step, in milliseconds */
  done(step: LaneStep): number {
    [this.workedAtMs, this.faults, this.reason] = [performance.now(), 0, null];
    this.active = step !== 'standing by';
    if (step === 'more') return 0;
    return step === 'idle' ? this.options.pollMs : STANDING_BY_MS;
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
    const isLong = this.faults > FAULTS_TO_TELL && performance.now() - this.toldAtMs > TELL_MS;
    if (this.faults !== FAULTS_TO_TELL && !isLong) return;
    this.toldAtMs = performance.now();
    logger?.warn({ chain, reason: this.reason }, 'the chain is not indexed further for now');
  }
}

/** Steps until it is closed; what fails is tried again, ever more seldom. */
export function openLane({ chain, lane, pollMs, logger }: RunLaneOptions): RunningLane {
  const stop = new AbortController();
  const course = new LaneCourse({ chain, pollMs, ...(logger && { logger }) });
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
      return course.active ? course.reason : 'another indexer has it: standing by';
    },
    close: async () => {
      stop.abort();
      await running;
    },
  };
}
