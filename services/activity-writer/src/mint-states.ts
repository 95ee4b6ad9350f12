import { setTimeout as delay } from 'node:timers/promises';
import { catchUpMints, createMintLogs, type MintLogsParts, type MintView } from '@playline/mints';
import type { Closable, Logger, Metrics } from '@playline/runtime';

/** How often it is checked whether there is anything to bring in: new states are shown later by at most this. */
const LOOK_MS = 250;
/** The logs are looked at this often even when nothing says that they have more. */
const REST_MS = 5_000;

export interface MintStatesParts extends MintLogsParts {
  readonly view: MintView;
  /** True while records of these logs wait to be read by this process, which would wake this when it reads them. */
  readonly isBehind: () => boolean;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Tests only: shorter ones. */
  readonly paces?: { readonly lookMs: number; readonly restMs: number };
}

export interface MintStates extends Closable {
  /** The logs have more. */
  wake(): void;
  /** False when the last look has failed: states that are shown stand still, and after a start of Redis nothing is accepted. */
  readonly working: boolean;
  /** Why it has. */
  reasons(): Readonly<Record<string, string>>;
}

/**
 * Keeps the latest state of each mint request in Redis level with the logs, over starts of Redis and of this process: the
 * view knows how far it has them, so several processes may do this at once.
 */
export function openMintStates({ view, isBehind, logger, metrics, ...parts }: MintStatesParts): MintStates {
  const { lookMs, restMs } = parts.paces ?? { lookMs: LOOK_MS, restMs: REST_MS };
  const total = metrics.counter('activity_writer_mint_states_total', 'States of mint requests brought into Redis');
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
  let isWoken = false;
  /** Waits until there may be something to bring in. Cheap: a look asks brokers for the ends of all partitions, this only Redis. */
  const rest = async () => {
    const endMs = performance.now() + restMs;
    do await delay(lookMs, undefined, { signal: closed.signal }).catch(() => {});
    while (
      !(closed.signal.aborted || isWoken || why !== null || isBehind() || performance.now() > endMs) &&
      (await isWhole(view).catch(() => false))
    );
    isWoken = false;
  };
  const watch = async () => {
    while (!closed.signal.aborted) {
      await look();
      await rest();
    }
  };
  const watching = watch();
  return {
    wake: () => {
      isWoken = true;
    },
    get working() {
      return why === null;
    },
    reasons: (): Readonly<Record<string, string>> => (why === null ? {} : { mintStates: why }),
    close: async () => {
      closed.abort();
      await watching;
    },
  };
}

async function isWhole(view: MintView): Promise<boolean> {
  const { run, completeIn } = await view.standing();
  return completeIn === run;
}
