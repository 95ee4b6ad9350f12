import { catchUpMints, createMintLogs, type MintLogsParts, type MintView } from '@playline/mints';
import type { Logger, Metrics } from '@playline/runtime';
import { pause } from '@playline/stores';

const INTERVALS: Intervals = { pollMs: 250, checkMs: 500, idleMs: 15_000 };

interface Intervals {
  /** Minimum interval between two reads of the logs, and therefore the maximum delay of a mint state. */
  readonly pollMs: number;
  /** How often Redis is checked for a restart while no records arrive. */
  readonly checkMs: number;
  /** Maximum interval between two reads of the logs. */
  readonly idleMs: number;
}

export interface MintStatesOptions extends MintLogsParts {
  readonly view: MintView;
  /** True while this process has unconsumed mint records. Consuming a record calls `wake`. */
  readonly isBehind: () => boolean;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Shorter intervals for tests. */
  readonly intervals?: Intervals;
}

export type MintStates = ReturnType<typeof openMintStates>;

/**
 * Copies the latest state of each mint request from the logs to Redis, even after a restart of this process or Redis.
 * Redis stores the offsets up to which the logs were read, so several processes can copy concurrently.
 */
export function openMintStates({ view, isBehind, logger, metrics, ...parts }: MintStatesOptions) {
  const { pollMs, checkMs, idleMs } = parts.intervals ?? INTERVALS;
  const copiedTotal = metrics.counter(
    'playline_activity_writer_mint_states_total',
    'Mint request states copied to Redis',
  );
  const logs = createMintLogs(parts);
  let faultReason: string | null = null;
  const copy = async () => {
    try {
      const count = await catchUpMints(view, logs);
      if (count > 0) copiedTotal.inc({}, count);
      if (faultReason !== null) logger.info('resumed copying mint states to Redis');
      faultReason = null;
    } catch (error) {
      if (faultReason === null) logger.warn({ error }, 'copying mint states to Redis failed; retrying');
      faultReason = `mint states are not copied to Redis: ${error instanceof Error ? error.message : String(error)}`;
    }
  };
  const closed = new AbortController();
  /** Aborted to read the logs again soon. */
  let waker = new AbortController();
  /** Waits until there may be new states. Polls only Redis, because reading the logs queries all end offsets. */
  const waitForMore = async () => {
    const endMs = performance.now() + idleMs;
    await pause(pollMs, closed.signal);
    const isDue = () =>
      closed.signal.aborted || waker.signal.aborted || faultReason !== null || isBehind() || performance.now() > endMs;
    while (!isDue() && (await isComplete(view).catch(() => false))) await pause(checkMs, waker.signal);
    waker = new AbortController();
  };
  const watch = async () => {
    while (!closed.signal.aborted) {
      await copy();
      await waitForMore();
    }
  };
  const watching = watch();
  return {
    /** Schedules an early read, because the logs have new records. */
    wake: () => waker.abort(),
    /** False if the last read failed. States are then stale, and after a restart of Redis no request is accepted. */
    get working() {
      return faultReason === null;
    },
    reasons: (): Readonly<Record<string, string>> => (faultReason === null ? {} : { mintStates: faultReason }),
    close: async () => {
      closed.abort();
      waker.abort();
      await watching;
    },
  };
}

async function isComplete(view: MintView): Promise<boolean> {
  const { run, completeIn } = await view.progress();
  return completeIn === run;
}
