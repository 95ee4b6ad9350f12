import { setTimeout as delay } from 'node:timers/promises';
import type { Closable, Logger } from '@playline/runtime';
import type { ChainLane } from './lane.ts';
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

/** Steps until it is closed; what fails is tried again, ever more seldom. */
export function openLane({ chain, lane, pollMs, logger }: RunLaneOptions): RunningLane {
  const stop = new AbortController();
  let [workedAtMs, isActive, faults]: [number, boolean, number] = [performance.now(), true, 0];
  let [reason, toldAtMs]: [string | null, number] = [null, 0];
  const pause = (ms: number) => delay(ms, undefined, { signal: stop.signal }).catch(() => {});

  const onFault = (fault: unknown): number => {
    // That all of them rest says nothing of why.
    if (!(fault instanceof NodesFault && fault.cause === null))
      reason = fault instanceof Error ? fault.message : String(fault);
    if (faults === FAULTS_TO_TELL || (faults > FAULTS_TO_TELL && performance.now() - toldAtMs > TELL_MS)) {
      toldAtMs = performance.now();
      logger?.warn({ chain, reason }, 'the chain is not indexed further for now');
    }
    const wait = Math.min(WAIT_MIN_MS * 2 ** Math.min(faults++, 20), WAIT_MAX_MS);
    return fault instanceof NodesFault ? Math.min(Math.max(fault.waitMs, WAIT_MIN_MS), wait) : wait;
  };
  const stepOnce = async (): Promise<number> => {
    try {
      const done = await lane.step();
      [workedAtMs, faults, reason] = [performance.now(), 0, null];
      isActive = done !== 'standing by';
      if (done === 'more') return 0;
      return done === 'idle' ? pollMs : STANDING_BY_MS;
    } catch (fault) {
      return onFault(fault);
    }
  };
  const run = async () => {
    while (!stop.signal.aborted) {
      const ms = await stepOnce();
      if (ms > 0) await pause(ms);
    }
    await lane.close();
  };
  const running = run();
  return {
    chain,
    get working() {
      return !lane.isHalted && performance.now() - workedAtMs < SILENT_MAX_MS;
    },
    get active() {
      return isActive;
    },
    get reason() {
      if (lane.isHalted) return `reorganised below what is final: ${reason}`;
      return isActive ? reason : 'another indexer has it: standing by';
    },
    close: async () => {
      stop.abort();
      await running;
    },
  };
}
