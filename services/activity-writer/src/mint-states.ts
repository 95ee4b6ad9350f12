import { catchUpMints, createMintLogs, type MintLogsParts, type MintView } from '@playline/mints';
import type { Closable, Logger, Metrics } from '@playline/runtime';
import { pause } from '@playline/stores';

/** Least time between two readings of the logs: states are shown later by at most this. */
const POLL_MS = 250;
/** How often Redis is asked at rest whether it was started anew. */
const CHECK_MS = 500;
/** The logs are read this often even when nothing says that they have more. */
const REST_MS = 15_000;

export interface MintStatesOptions extends MintLogsParts {
  readonly view: MintView;
  /** True while this process has records of these logs left to consume; consuming one calls `wake`. */
  readonly isBehind: () => boolean;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Only for tests: shorter intervals. */
  readonly intervals?: { readonly pollMs: number; readonly checkMs: number; readonly restMs: number };
}

export interface MintStates extends Closable {
  /** Makes the next look come soon, because the logs have more. */
  wake(): void;
  /** False when the last look failed: shown states are old, and after a restart of Redis nothing is accepted. */
  readonly working: boolean;
  /** Why the last look failed. */
  reasons(): Readonly<Record<string, string>>;
}

/**
 * Copies the latest state of each mint request from the logs to Redis, also after restarts of either. The view stores
 * how far it has read the logs, so several processes may do this at once.
 */
export function openMintStates({ view, isBehind, logger, metrics, ...parts }: MintStatesOptions): MintStates {
  const {
    pollMs: lookMs,
    checkMs: askMs,
    restMs,
  } = parts.intervals ?? { pollMs: POLL_MS, checkMs: CHECK_MS, restMs: REST_MS };
  const total = metrics.counter(
    'playline_activity_writer_mint_states_total',
    'States of mint requests brought into Redis',
  );
  const logs = createMintLogs(parts);
  let why: string | null = null;
  const look = async () => {
    try {
      const count = await catchUpMints(view, logs);
      if (count > 0) total.inc({}, count);
      if (why !== null) logger.info('states of mint requests are brought into Redis again');
      why = null;
    } catch (error) {
      if (why === null) logger.warn({ error }, 'states of mint requests are not brought into Redis');
      why = `states of mint requests stand still: ${error instanceof Error ? error.message : String(error)}`;
    }
  };
  const closed = new AbortController();
  /** Aborted when the next look should come soon. */
  let woken = new AbortController();
  /** Waits until there may be new states. Asks only Redis; a look at the logs asks brokers for all ends. */
  const rest = async () => {
    const endMs = performance.now() + restMs;
    await pause(lookMs, closed.signal);
    const isOver = () =>
      closed.signal.aborted || woken.signal.aborted || why !== null || isBehind() || performance.now() > endMs;
    while (!isOver() && (await isWhole(view).catch(() => false))) await pause(askMs, woken.signal);
    woken = new AbortController();
  };
  const watch = async () => {
    while (!closed.signal.aborted) {
      await look();
      await rest();
    }
  };
  const watching = watch();
  return {
    wake: () => woken.abort(),
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

async function isWhole(view: MintView): Promise<boolean> {
  const { run, completeIn } = await view.progress();
  return completeIn === run;
}
