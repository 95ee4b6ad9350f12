import type { Closable, Logger } from '@playline/runtime';
import { pause } from '@playline/stores';
import type { HeadWatch } from './head-watch.ts';
import type { ChainLane, LaneStep } from './lane.ts';
import { NodesFault } from './node-pool.ts';

export interface RunningLane extends Closable {
  readonly chain: string;
  /** Whether the lane can index its chain. False while the chain is halted or the lane is silent. */
  readonly isWorking: boolean;
  /** False while the chain has no new blocks. Always true on standby, because the process that owns the chain reports it. */
  readonly isAdvancing: boolean;
  /** Why `isWorking` or `isAdvancing` is false, or why this process indexes nothing. */
  readonly reason: string | null;
  /** Milliseconds by which a step is overdue because nodes or brokers do not respond. */
  readonly silentMs: number;
}

export interface RunLaneOptions {
  readonly chain: string;
  readonly lane: Pick<ChainLane, 'step' | 'close' | 'isHalted' | 'workedAtMs' | 'foundAtMs'>;
  readonly watch?: Pick<HeadWatch, 'stall'>;
  readonly pollMs: number;
  readonly logger?: Logger;
  /** Returns monotonic time. */
  readonly nowMs?: () => number;
}

/** Shorter silences are not reported. */
const SILENT_MAX_MS = 30_000;
/** Fewer consecutive faults are normal. */
const FAULTS_TO_LOG = 3;
const LOG_INTERVAL_MS = 60_000;
const WAIT_MIN_MS = 100;
const WAIT_MAX_MS = 30_000;
const INACTIVE_POLL_MS = 1_000;
/** After this time without a new final block, the chain is polled less often. */
const QUIET_AFTER_MS = 30_000;
const QUIET_POLL_MAX_MS = 4_000;
const QUIET_POLL_FACTOR = 4;

class LaneProgress {
  private readonly options: Pick<RunLaneOptions, 'chain' | 'lane' | 'pollMs' | 'logger'>;
  private readonly nowMs: () => number;
  /** When the next step after the last successful step is due. */
  private dueAtMs: number;
  private loggedAtMs = Number.NEGATIVE_INFINITY;
  private faults = 0;
  private readonly begunAtMs: number;
  isActive = true;
  reason: string | null = null;

  constructor(options: LaneProgress['options'], nowMs: () => number) {
    this.options = options;
    this.nowMs = nowMs;
    this.dueAtMs = nowMs();
    this.begunAtMs = nowMs();
  }

  get silentMs(): number {
    // A single step may publish a large block in many batches.
    return Math.max(0, this.nowMs() - Math.max(this.dueAtMs, this.options.lane.workedAtMs));
  }

  /** @returns milliseconds until the next step */
  recordSuccess(step: LaneStep): number {
    const wait = step === 'more' ? 0 : step === 'idle' ? this.pollMs : INACTIVE_POLL_MS;
    [this.dueAtMs, this.faults, this.reason] = [this.nowMs() + wait, 0, null];
    this.isActive = step !== 'inactive';
    return wait;
  }

  private get pollMs(): number {
    const { pollMs, lane } = this.options;
    if (this.nowMs() - Math.max(lane.foundAtMs, this.begunAtMs) < QUIET_AFTER_MS) return pollMs;
    return Math.max(pollMs, Math.min(pollMs * QUIET_POLL_FACTOR, QUIET_POLL_MAX_MS));
  }

  /** @returns milliseconds until the next step */
  recordFault(fault: unknown): number {
    const wereNodesSkipped = fault instanceof NodesFault && fault.cause === null;
    // Retains the previous reason, because skipped nodes are not a cause.
    if (!wereNodesSkipped) this.reason = fault instanceof Error ? fault.message : String(fault);
    this.logFault();
    const wait = Math.min(WAIT_MIN_MS * 2 ** Math.min(this.faults++, 20), WAIT_MAX_MS);
    return fault instanceof NodesFault ? Math.min(Math.max(fault.waitMs, WAIT_MIN_MS), wait) : wait;
  }

  private logFault(): void {
    const { chain, logger } = this.options;
    const isLong = this.faults > FAULTS_TO_LOG && this.nowMs() - this.loggedAtMs > LOG_INTERVAL_MS;
    if (this.faults !== FAULTS_TO_LOG && !isLong) return;
    this.loggedAtMs = this.nowMs();
    logger?.warn({ chain, reason: this.reason }, 'indexing failed; retrying');
  }
}

function toStallReason(stall: HeadWatch['stall']): string | null {
  if (stall === null) return null;
  return `no node has had a new block for ${Math.floor(stall.ms / 1000)} s; the latest is ${stall.block}`;
}

/** Runs steps until closed, and backs off after faults. */
export function openLane(options: RunLaneOptions): RunningLane {
  const { chain, lane, watch, nowMs = () => performance.now() } = options;
  const stop = new AbortController();
  const progress = new LaneProgress(options, nowMs);
  const run = async () => {
    while (!stop.signal.aborted) {
      const ms = await lane.step().then(
        (step) => progress.recordSuccess(step),
        (fault: unknown) => progress.recordFault(fault),
      );
      if (ms > 0) await pause(ms, stop.signal);
    }
    await lane.close();
  };
  const running = run();
  return {
    chain,
    get isWorking() {
      return !lane.isHalted && progress.silentMs < SILENT_MAX_MS;
    },
    get isAdvancing() {
      return !progress.isActive || (watch?.stall ?? null) === null;
    },
    get reason() {
      if (lane.isHalted) return `the chain was reorganised below its last final block: ${progress.reason}`;
      if (!progress.isActive) return 'another process indexes this chain';
      const isSilent = progress.silentMs >= SILENT_MAX_MS;
      if (isSilent) return progress.reason ?? 'no response from nodes or brokers for 30 s';
      return progress.reason ?? toStallReason(watch?.stall ?? null);
    },
    get silentMs() {
      return progress.silentMs;
    },
    close: async () => {
      stop.abort();
      await running;
    },
  };
}
