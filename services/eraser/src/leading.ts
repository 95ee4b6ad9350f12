import type { Closable } from '@playline/runtime';

/** Work that this process does for as long as it leads. */
export interface Leading extends Closable {
  /** This process leads from now on; nothing happens when it does already. */
  lead(): void;
  /** Another process may lead from now on. Resolves when what was under way has stopped. */
  follow(): Promise<void>;
}

/** Runs work one after the other, also behind work of an earlier time as the leader that has not stopped yet. */
export type RunInTurn = (work: () => Promise<void>) => void;

/**
 * Opens the work of a leader; nothing runs before it leads. Closing is following.
 * @param begin called each time that this process begins to lead; the signal is aborted when it leads no more
 */
export function openLeading(begin: (signal: AbortSignal, run: RunInTurn) => void): Leading {
  let stop: AbortController | null = null;
  let running = Promise.resolve();
  const run: RunInTurn = (work) => {
    running = running.then(work);
  };
  const follow = async () => {
    stop?.abort();
    stop = null;
    await running;
  };
  return {
    lead() {
      if (stop !== null) return;
      stop = new AbortController();
      begin(stop.signal, run);
    },
    follow,
    close: follow,
  };
}
