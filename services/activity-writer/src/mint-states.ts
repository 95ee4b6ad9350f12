import { catchUpMints, createMintLogs, type MintLogsParts, type MintView } from '@playline/mints';
import type { Logger, Metrics } from '@playline/runtime';
import { pause } from '@playline/stores';

const INTERVALS: Intervals = { pollMs: 250, checkMs: 500, restMs: 15_000 };

interface Intervals {
  /** Shortest time between two readings of the logs: states are shown later by at most this. */
  readonly pollMs: number;
  /** How often Redis is checked for a restart while nothing is new. */
  readonly checkMs: number;
  /** The logs are read this often in any case. */
  readonly restMs: number;
}

export interface MintStatesOptions extends MintLogsParts {
  readonly view: MintView;
  /** True while this process has records of these logs left to consume; consuming one calls `wake`. */
  readonly isBehind: () => boolean;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Only for tests: shorter intervals. */
  readonly intervals?: Intervals;
}

export type MintStates = ReturnType<typeof openMintStates>;

/**
 * Copies the latest state of each mint request from the logs to Redis, also after restarts of either. The view stores
 * how far it has read the logs, so several processes may do this concurrently.
 */
export function openMintStates({ view, isBehind, logger, metrics, ...parts }: MintStatesOptions) {
  const { pollMs, checkMs, restMs } = parts.intervals ?? INTERVALS;
  const total = metrics.counter('playline_activity_writer_mint_states_total', 'Mint request states copied to Redis');
  const logs = createMintLogs(parts);
  let why: string | null = null;
  const copy = async () => {
    try {
      const count = await catchUpMints(view, logs);
      if (count > 0) total.inc({}, count);
      if (why !== null) logger.info('states of mint requests are copied to Redis again');
      why = null;
    } catch (error) {
      if (why === null) logger.warn({ error }, 'states of mint requests are not copied to Redis');
      why = `states of mint requests are not copied: ${error instanceof Error ? error.message : String(error)}`;
    }
  };
  const closed = new AbortController();
  /** Aborted when the next reading should come soon. */
  let woken = new AbortController();
  /** Waits until there may be new states. It only polls Redis: reading the logs requests all their ends from brokers. */
  const waitForMore = async () => {
    const endMs = performance.now() + restMs;
    await pause(pollMs, closed.signal);
    const isOver = () =>
      closed.signal.aborted || woken.signal.aborted || why !== null || isBehind() || performance.now() > endMs;
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
    /** Makes the next reading come soon, because the logs have more. */
    wake: () => woken.abort(),
    /** False when the last reading failed: shown states are old, and after a restart of Redis nothing is accepted. */
    get working() {
      return why === null;
    },
    reasons: (): Readonly<Record<string, string>> => (why === null ? {} : { mintStates: why }),
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
