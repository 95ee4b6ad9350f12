import { setTimeout as delay } from 'node:timers/promises';
import { catchUpMints, createMintLogs, type MintLogsParts, type MintView } from '@playline/mints';
import type { Closable, Logger, Metrics } from '@playline/runtime';

/** How often the logs are looked at: what the minter says is shown so much later at most. */
const LOOK_MS = 250;

export interface MintStatesParts extends MintLogsParts {
  readonly view: MintView;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

export interface MintStates extends Closable {
  /** False when the last look has failed: states that are shown stand still, and after a start of Redis nothing is accepted. */
  readonly working: boolean;
  /** Why it has. */
  reasons(): Readonly<Record<string, string>>;
}

/**
 * Keeps the latest state of each mint request in Redis level with the logs, over starts of Redis and of this process: the
 * view knows how far it has them, so several processes may do this at once.
 */
export function openMintStates({ view, logger, metrics, ...parts }: MintStatesParts): MintStates {
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
  const watch = async () => {
    while (!closed.signal.aborted) {
      await look();
      await delay(LOOK_MS, undefined, { signal: closed.signal }).catch(() => {});
    }
  };
  const watching = watch();
  return {
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
