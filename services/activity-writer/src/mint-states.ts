import { catchUpMints, createMintLogs, type MintLogsParts, type MintView } from '@playline/mints';
import type { Logger, Metrics } from '@playline/runtime';
import { pause } from '@playline/stores';

const INTERVALS: Intervals = { pollMs: 250, checkMs: 500, restMs: 15_000 };

interface Intervals {
  /** Shortest interval between two reads of the logs, and so the largest delay of shown states. */
  readonly pollMs: number;
  /** How often Redis is checked for a restart while there are no new records. */
  readonly checkMs: number;
  /** The logs are read at least this often. */
  readonly restMs: number;
}

export interface MintStatesOptions extends MintLogsParts {
  readonly view: MintView;
  /** True while this process has unconsumed records of these logs; consuming a record calls `wake`. */
  readonly isBehind: () => boolean;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Only for tests: shorter intervals. */
  readonly intervals?: Intervals;
}

export type MintStates = ReturnType<typeof openMintStates>;

/**
 * Copies the latest state of each mint request from the logs to Redis, even after restarts of either. The view stores
 * how far it has read the logs, so several processes may do this concurrently.
 */
export function openMintStates({ view, isBehind, logger, metrics, ...parts }: MintStatesOptions) {
  const { pollMs, checkMs, restMs } = parts.intervals ?? INTERVALS;
  const total = metrics.counter('playline_activity_writer_mint_states_total', 'Mint request states copied to Redis');
  const logs = createMintLogs(parts);
  let faultReason: string | null = null;
  const copy = async () => {
    try {
      const count = await catchUpMints(view, logs);
      if (count > 0) total.inc({}, count);
      if (faultReason !== null) logger.info('copying mint request states to Redis resumed');
      faultReason = null;
    } catch (error) {
      if (faultReason === null) logger.warn({ error }, 'copying mint request states to Redis failed');
      faultReason = `mint request states are not copied: ${error instanceof Error ? error.message : String(error)}`;
    }
  };
  const closed = new AbortController();
  /** Aborted when the next read is due soon. */
  let woken = new AbortController();
  /** Waits until there may be new states. Only polls Redis, because reading the logs requests all ends from brokers. */
  const waitForMore = async () => {
    const endMs = performance.now() + restMs;
    await pause(pollMs, closed.signal);
    const isOver = () =>
      closed.signal.aborted || woken.signal.aborted || faultReason !== null || isBehind() || performance.now() > endMs;
    while (!isOver() && (await isComplete(view).catch(() => false))) await pause(checkMs, woken.signal);
    woken = new AbortController();
  };
  const watch = async () => {
    while (!closed.signal.aborted) {
      await copy();
      await waitForMore();
    }
  };
  const watching = watch();
  return {
    /** Schedules the next read soon, because the logs have new records. */
    wake: () => woken.abort(),
    /** False when the last read failed: shown states are stale, and after a Redis restart no request is accepted. */
    get working() {
      return faultReason === null;
    },
    reasons: (): Readonly<Record<string, string>> => (faultReason === null ? {} : { mintStates: faultReason }),
    close: async () => {
      closed.abort();
      woken.abort();
      await watching;
    },
  };
}

async function isComplete(view: MintView): Promise<boolean> {
  const { run, completeIn } = await view.progress();
  return completeIn === run;
}
